// The page of imports and exports of a table.

import { byId, h, fill, notice } from "./dom.js";
import { bytes } from "./format.js";
import { tabs } from "./tabs.js";
import { exportForm } from "./export.js";
import { ended, follow, showJob } from "./jobs.js";
import { parameters, ready, table } from "./page.js";
import * as api from "./api.js";

const chunk = 4 << 20; // bytes of a file in a request
const attempts = 3; // of a chunk, before the reader is asked

const box = byId("import-job");
let upload; // {job, file, offset, ended} of the import under way

const message = (text) => h("p", { class: "quiet" }, text);

/** Sends the rest of the file. The server says where to continue after a failure. */
async function send() {
  byId("resume").hidden = true;
  byId("start").disabled = true;
  let failures = 0;
  while (upload.offset < upload.file.size || upload.file.size === 0) {
    try {
      const { received } = await api.postData("import/data", { id: upload.job, offset: upload.offset }, upload.file.slice(upload.offset, upload.offset + chunk));
      upload.offset = received;
      failures = 0;
      if (upload.file.size === 0) break;
    } catch (error) {
      if (error.status >= 400 && error.status < 500 && error.status !== 409 && error.status !== 429) break; // the job says why
      if (++failures >= attempts) throw error;
      await new Promise((resolve) => { setTimeout(resolve, 200 << failures); });
      const job = await api.get("job", { id: upload.job });
      if (ended(job)) break;
      upload.offset = job.received;
    }
  }
}

async function work() {
  const status = h("div");
  fill(box, status);
  const watch = () => follow(upload.job, (job) => { upload.ended = ended(job); showJob(status, job); });
  const watching = watch().catch(() => undefined); // a failure of the connection is that of the file too
  try {
    await send();
    if (!(await watching)) await watch();
    upload = undefined;
    watchJobs();
  } catch (error) {
    fill(box, notice("error", error.message), message(`${bytes(upload.offset)} of ${bytes(upload.file.size)} are sent. Continue when the server answers again.`));
    byId("resume").hidden = false;
    byId("resume").focus();
  } finally {
    byId("start").disabled = false;
  }
}

byId("import").addEventListener("submit", async (event) => {
  event.preventDefault();
  const file = byId("file").files[0];
  if (!file || byId("start").disabled) return;
  byId("start").disabled = true; // until the end of work
  try {
    const { job } = await api.post("import", {
      account: table.account, table: table.name, name: file.name, size: file.size, format: byId("format").value, mode: byId("mode").value,
      skipBad: byId("skip-bad").checked, partitionKey: byId("pk-column").value, rowKey: byId("rk-column").value, delimiter: byId("delimiter").value,
    });
    upload = { job, file, offset: 0 };
  } catch (error) {
    byId("start").disabled = false;
    fill(box, notice("error", error.message));
    return;
  }
  await work();
});

byId("resume").addEventListener("click", async () => {
  try {
    upload.offset = (await api.get("job", { id: upload.job })).received;
  } catch (error) {
    fill(box, notice("error", error.message));
    return;
  }
  await work();
});

const sending = () => upload && !upload.ended;
api.keepWhile(sending);
addEventListener("beforeunload", (event) => { if (sending()) event.preventDefault(); });

async function listJobs() {
  const { jobs } = await api.get("jobs");
  const own = jobs.filter((job) => job.account === table.account && job.table === table.name);
  const list = byId("jobs");
  const ids = own.map((job) => job.id).join(" ") || "none";
  if (list.dataset.ids !== ids) {
    list.dataset.ids = ids;
    fill(list, own.length === 0 ? message("None yet. An import or export appears here, and continues while other pages are open.") : own.map(() => h("div", { class: "panel" })));
  }
  own.forEach((job, i) => showJob(list.children[i], job));
  return own.some((job) => !ended(job));
}

let watching = false;
let again = false; // there can be another job than those of the list

/** Lists the jobs until all have ended. */
async function watchJobs() {
  again = true;
  if (watching) return;
  watching = true;
  try {
    while (again) {
      again = false;
      if (await listJobs()) again = await new Promise((resolve) => { setTimeout(resolve, 1000, true); });
    }
  } catch (error) {
    delete byId("jobs").dataset.ids;
    fill(byId("jobs"), notice("error", error.message));
  }
  watching = false;
}

byId("name").textContent = table.name;
byId("crumb-account").textContent = table.account;
document.title = `Import and export of ${table.name} · Tablerock`;
const query = { filter: parameters.get("filter") ?? "", select: parameters.get("select") ?? "" };
tabs("transfer", table, query);
fill(byId("export"), exportForm(table, query, undefined, watchJobs));
ready();
watchJobs();
