// The page of accounts and tables.

import { byId, h, fill, bdi, field, select, notice, failure, dialog, confirm, actions, toast } from "./dom.js";
import { bytes, count, plural, time, times } from "./format.js";
import { showJob, follow } from "./jobs.js";
import { onKey } from "./shortcuts.js";
import { onZone, ready } from "./page.js";
import * as api from "./api.js";

const box = byId("accounts");
const most = 2000; // rows of a list; the search finds the others
let shown = []; // [{account, tables, totals, error}]

async function load() {
  try {
    const { accounts } = await api.get("accounts");
    shown = await Promise.all(accounts.map(async (account) => {
      try {
        return { account, ...(await api.get("tables", { a: account.name })) };
      } catch (error) {
        return { account, tables: [], error };
      }
    }));
  } catch (error) {
    fill(box, notice("error", error.message));
    ready();
    return;
  }
  byId("new").disabled = !shown.some(({ account }) => account.can?.create !== false && !account.readOnly);
  draw();
  ready();
  box.setAttribute("aria-busy", "false");
}

function draw() {
  const wanted = byId("find").value.trim().toLowerCase();
  fill(box, shown.length === 0 ? h("div", { class: "panel empty" }, h("p", null, "There is no account. Add one with "), h("code", null, "tablerock serve --account NAME:KEY")) :
    shown.map((one) => section(one, wanted)));
}

function section({ account, tables, totals, error }, wanted) {
  const found = tables.filter((t) => t.name.toLowerCase().includes(wanted));
  return h("section", { class: "panel", "aria-label": `Account ${account.name}` },
    h("div", { class: "row" },
      h("h2", null, bdi(account.name)),
      h("span", { class: "quiet fit" }, plural(tables.length, "table"),
        account.totals && ` · ${account.exact ? "" : "about "}${plural(account.entities, "entity", "entities")} · ${bytes(account.bytes)}`,
        account.readOnly && " · read only"),
      h("span", { class: "row" },
        account.sas && h("a", { class: "button", href: api.page("access", { account: account.name }), "aria-label": `Shared access signature of ${account.name}` }, "Signature…"))),
    h("p", { class: "quiet" }, bdi(account.where)),
    account.failure && notice("error", account.failure.message),
    error && notice("error", error.message),
    tables.length === 0 && !error ? emptyAccount(account)
      : found.length === 0 && !error ? h("div", { class: "empty" }, h("p", null, "No table has this in its name."))
        : list(account, found, totals));
}

function emptyAccount(account) {
  return h("div", { class: "empty" }, h("p", null, h("strong", null, "No tables yet.")),
    account.can?.create === false || account.readOnly ? h("p", null, "A client of this account creates them.") :
      h("div", { class: "row" }, h("button", { onclick: () => create(account.name) }, "New table…")));
}

function list(account, tables, totals) {
  const can = account.can ?? {};
  const about = (t) => (t.exact ? count(t.entities) : `≈ ${count(t.entities)}`);
  const head = ["Table", ...(totals ? ["Entities", "Size"] : []), "Created", "Do"];
  return h("div", { class: "scroll" }, h("table", { class: "list" },
    h("thead", null, h("tr", null, head.map((name, i) => h("th", { scope: "col", class: name === "Created" ? "wide-only" : totals && (i === 1 || i === 2) ? "number" : null }, name === "Do" ? h("span", { class: "sr" }, "Do") : name)))),
    h("tbody", null, tables.slice(0, most).map((t) => h("tr", null,
      h("th", { scope: "row" }, h("a", { class: "table-link", href: api.page("table", { account: account.name, table: t.name }) }, bdi(t.name))),
      totals && [h("td", { class: "number", title: t.exact ? "exact" : "an estimate" }, about(t)), h("td", { class: "number" }, bytes(t.bytes))],
      h("td", { class: "wide-only", title: t.created ? times(t.created) : null }, time(t.created).replace(/\.\d+/, "")),
      h("td", null, h("div", { class: "row ends" },
        can.delete !== false && !account.readOnly && h("button", { class: "plain", "aria-label": `Clear ${t.name}`, onclick: () => clear(account.name, t.name) }, "Clear…"),
        can.drop !== false && !account.readOnly && h("button", { class: "plain", "aria-label": `Delete ${t.name}`, onclick: () => remove(account.name, t.name) }, "Delete…"))))))),
  tables.length > most && h("p", { class: "quiet" }, `${count(tables.length - most)} more: type a part of the name above.`));
}

async function create(account) {
  const names = shown.filter((one) => one.account.can?.create !== false && !one.account.readOnly).map((one) => one.account.name);
  const done = await dialog({
    title: "New table",
    make(close, heading) {
      const of = select({}, names, account ?? names[0]);
      const name = h("input", { autofocus: true, required: true, spellcheck: "false", autocomplete: "off", autocapitalize: "none" });
      const problem = h("div", { "aria-live": "polite" });
      const submit = async (event) => {
        event.preventDefault();
        try {
          await api.post("tables/create", { account: of.value, table: name.value });
          close({ account: of.value, table: name.value });
        } catch (error) {
          name.setAttribute("aria-invalid", "true");
          fill(problem, failure(error));
          name.focus();
        }
      };
      return h("form", { onsubmit: submit }, heading, field("Name", name, "3 to 63 letters and digits, first a letter"),
        names.length > 1 && field("Account", of), problem, actions(close, h("button", { class: "main" }, "Create")));
    },
  });
  if (done) {
    toast(`Created ${done.table}`);
    await load();
    [...document.querySelectorAll(".table-link")].find((a) => a.textContent === done.table)?.focus();
  }
}

async function remove(account, table) {
  const done = await confirm({
    title: `Delete the table ${table}?`, word: table, button: "Delete the table",
    text: ["The table ", bdi(table), " of the account ", bdi(account), " and all of its entities are removed. There is no way back but a backup."],
    run: () => api.post("tables/delete", { account, table, typed: table }),
  });
  if (done) {
    toast(`Deleted ${table}`);
    await load();
  }
}

async function clear(account, table) {
  let job;
  const done = await confirm({
    title: `Clear the table ${table}?`, word: table, button: "Delete all entities",
    text: ["All entities of ", bdi(table), " are deleted. The table and its access policies stay."],
    run: async () => { ({ job } = await api.post("tables/clear", { account, table, typed: table })); },
  });
  if (!done) return;
  await dialog({
    title: `Clear ${table}`,
    make(close, heading) {
      const status = h("div");
      follow(job, (state) => showJob(status, state)).catch((error) => fill(status, notice("error", error.message)));
      return h("div", { class: "body" }, heading, status, h("div", { class: "actions" }, h("button", { class: "main", autofocus: true, onclick: () => close() }, "Close")));
    },
  });
  await load();
}

byId("find").addEventListener("input", draw);
byId("new").addEventListener("click", () => create());
onKey("n", () => { if (!byId("new").disabled) create(); });
onKey("/", () => byId("find").focus());
onZone(draw);
load();
