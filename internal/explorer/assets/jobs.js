// Work in the background, with its progress.

import { h, fill, notice, bdi, toast } from "./dom.js";
import { bytes, byteRate, count, duration, plural, rate } from "./format.js";
import * as api from "./api.js";

const pollEvery = 500; // milliseconds, less at the begin of a job

export const ended = (job) => !["waiting", "running"].includes(job.state);

const verbs = { import: "Import into", export: "Export of", clear: "Clearing" };

const cancelJob = (id) => api.post("job/cancel", { id }).catch((error) => toast(error.message, "error"));

/** Shows a Job in an element. Its button stays, with the focus, while the rest changes. */
export function showJob(box, job) {
  const seconds = Math.max(job.ms, 1) / 1000;
  const done = ended(job);
  const waiting = job.state === "waiting"; // a file that is read when all of it has arrived
  const part = job.size > 0 ? Math.min(1, (waiting ? job.received : job.bytes) / job.size) : 0;
  const size = job.size > 0 ? ` of ${bytes(job.size)}` : "";
  if (box.dataset.job !== job.id) {
    box.dataset.job = job.id;
    fill(box, h("div", { class: "stack" }, h("div", { class: "stack" }),
      h("div", null, h("button", { type: "button", onclick: () => cancelJob(job.id) }, "Cancel this job"))));
  }
  const [state, cancel] = box.firstChild.children;
  if (done) cancel?.remove();
  const open = state.querySelector("details")?.open;
  fill(state,
    h("div", { class: "row spread" }, h("strong", null, verbs[job.kind] ?? job.kind, " ", bdi(job.table)), h("span", { class: "quiet" }, job.state)),
    h("progress", { "aria-label": `Progress of ${job.kind}`, ...(done ? { value: job.state === "done" ? 1 : part, max: 1 } : job.size > 0 ? { value: part, max: 1 } : {}) }),
    h("div", { class: "quiet" },
      waiting ? `${bytes(job.received)}${size} received` : [
        job.kind === "import" && !done && `${plural(job.read, "row")} read, `,
        plural(job.rows, "entity", "entities"), job.kind === "import" && !done && " stored", job.kind !== "clear" && `, ${bytes(job.bytes)}${size}`],
      ` in ${duration(job.ms)}`,
      done && job.rows > 0 && ` · ${rate(job.rows / seconds)}${job.kind === "clear" ? "" : `, ${byteRate(job.bytes / seconds)}`}`,
      job.skipped > 0 && ` · ${count(job.skipped)} skipped`),
    job.failure && notice("error", job.failure.code && `${job.failure.code}: `, job.failure.message),
    job.bad?.length > 0 && h("details", { open }, h("summary", null, "Skipped rows"), h("ul", null, job.bad.map((text) => h("li", null, bdi(text))))),
    job.kind === "export" && job.state === "done" && h("div", null, h("a", { href: api.url("/ui/api/export/file", { id: job.id }), download: job.name }, job.name)));
}

/** Polls a job until it ends, calls show with each state, and returns the last. */
export async function follow(id, show, signal) {
  for (let wait = 50; ; wait = Math.min(2 * wait, pollEvery)) {
    const job = await api.get("job", { id }, signal);
    show(job);
    if (ended(job)) return job;
    await new Promise((resolve) => { setTimeout(resolve, wait); });
    signal?.throwIfAborted();
  }
}
