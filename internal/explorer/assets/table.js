// The page of a table: query, explanation, grid and the work on entities.

import { byId, h, fill, bdi, field, select, failure, dialog, confirm, actions, announce, copy, toast } from "./dom.js";
import { count, duration, plural } from "./format.js";
import { Grid } from "./grid.js";
import { Query } from "./query.js";
import { editEntity, showValue, types } from "./entity.js";
import { exportDialog } from "./export.js";
import { toCSV, toJSON } from "./text.js";
import { tabs } from "./tabs.js";
import { onKey } from "./shortcuts.js";
import { onZone, parameters, ready, table } from "./page.js";
import * as api from "./api.js";

const cellBytes = 1024; // of a value in a page; a whole entity is read for the editor
const batchSize = 100;

let tokens = [""]; // the token of each page up to the present one: Back goes through them
let page = null; // the present EntityPage
let first = 0; // number of the rows on the pages before
let counts = []; // of the rows of the pages before
let start = {}; // the key of a jump
let ran = {}; // the filter and the columns of the pages, until the query runs again
let loading; // AbortController of the page under way
let can = {}; // what the session may do; unknown until the account is read

const grid = new Grid(byId("grid"), {
  open: (row) => edit(row),
  value: async (row, property) => {
    const whole = property.cut ? await run(() => fullRow(row)) : row;
    if (whole) showValue(row, whole.props.find((p) => p.name === property.name) ?? property);
  },
  selected: showSelection,
  link: (row) => api.page("table", { ...address(), epk: row.pk, erk: row.rk }).concat(row.pk === "" ? "&epk=" : "", row.rk === "" ? "&erk=" : ""),
});

const query = new Query(() => load());

const at = () => ({ a: table.account, t: table.name });

/** The query of the page as parameters of its URL. */
const address = () => ({ account: table.account, table: table.name, filter: query.filter, select: query.select, ...start });

/** Runs a step and shows its error at the edge of the window. */
async function run(step) {
  try {
    return await step();
  } catch (error) {
    if (error.name !== "AbortError") toast(error.message, "error");
    return undefined;
  }
}

/** Starts the query of the form from its first page. */
async function load(jump = {}) {
  start = jump;
  ran = { filter: query.filter, select: query.select };
  tokens = [""];
  counts = [];
  history.replaceState(null, "", api.page("table", address()));
  tabs("table", table, query);
  endCount();
  byId("counted").textContent = "";
  query.prepareExplain();
  if (await show()) query.explain();
  else if (!page) byId("explain").hidden = true;
}

/** Loads the page of the last token. A page without rows is followed until one has some. */
async function show() {
  loading?.abort();
  loading = new AbortController();
  const { signal } = loading;
  byId("grid").setAttribute("aria-busy", "true");
  let examined = 0;
  try {
    for (;;) {
      const token = tokens.at(-1);
      page = await api.get("entities", {
        ...at(), ...ran, top: byId("top").value, cell: cellBytes, ...(token ? { next: token } : start),
      }, signal);
      examined += page.examined;
      if (page.rows.length > 0 || !page.next) break;
      byId("status").textContent = `No match yet${examined ? ` in ${plural(examined, "entity", "entities")}` : ""}, still searching…`;
      tokens[tokens.length - 1] = page.next;
    }
  } catch (error) {
    if (error.name === "AbortError") return false;
    page = null;
    byId("status").textContent = "";
    grid.showNothing(failure(error), h("p", null, error.status === 403 || error.status === 404 ? h("a", { href: "/ui/" }, "Choose a table")
      : error.status >= 400 && error.status < 500 || error.status === 501 ? "Change the query and run it again." : "Run the query again later."));
    if (error.position !== undefined) query.showError(error);
    showButtons();
    byId("grid").setAttribute("aria-busy", "false");
    return false;
  }
  first = counts.reduce((a, b) => a + b, 0);
  render(examined);
  byId("grid").setAttribute("aria-busy", "false");
  return true;
}

function render(examined) {
  query.learn(page.columns);
  if (page.rows.length === 0) showEmpty();
  else grid.show(page, `Entities of ${table.name}`);
  const rows = page.rows.length === 0 ? "No rows" : `Rows ${count(first + 1)} to ${count(first + page.rows.length)}${page.next ? "" : ", the last"}`;
  byId("status").textContent = `${rows} · ${duration(page.ms)}${examined ? ` · ${plural(examined, "entity", "entities")} examined` : ""}`;
  announce(rows);
  showButtons();
}

function showEmpty() {
  if (ran.filter || tokens.length > 1) {
    grid.showNothing(h("p", null, h("strong", null, "No entity matches.")), h("p", null, "Change the filter, or clear it to see all entities."));
  } else if ("pk" in start || "rk" in start) {
    grid.showNothing(h("p", null, h("strong", null, "There is no entity at this key or after it.")), h("p", null, "Run the query to begin at the first."));
  } else {
    grid.showNothing(h("p", null, h("strong", null, "This table is empty.")), !byId("new").disabled && h("div", { class: "row" },
      h("button", { onclick: () => create() }, "New entity…"),
      h("a", { class: "button", href: api.page("transfer", { account: table.account, table: table.name }) }, "Import a file")));
  }
}

function showButtons() {
  byId("first").disabled = byId("back").disabled = tokens.length < 2;
  byId("next").disabled = !page?.next;
}

function showSelection(rows) {
  byId("selected").textContent = rows.length ? `${count(rows.length)} selected` : "";
  const some = grid.rows.length > 0;
  byId("delete").disabled = rows.length === 0 || can.delete === false;
  byId("set").disabled = rows.length === 0 || can.update === false;
  byId("edit").disabled = !some;
  byId("copy-json").disabled = byId("copy-csv").disabled = !some;
}

async function turn(step) {
  if (step > 0 && byId("grid").getAttribute("aria-busy") === "false" && page?.next) {
    counts.push(page.rows.length);
    tokens.push(page.next);
  } else if (step < 0 && tokens.length > 1) {
    counts.pop();
    tokens.pop();
  } else {
    return;
  }
  await show();
}

/** The selected rows, or the one with the focus. */
const chosen = () => (grid.selected.length > 0 ? grid.selected : grid.current ? [grid.current] : []);

async function fullRow(row) {
  try {
    return await api.get("entity", { ...at(), pk: row.pk, rk: row.rk });
  } catch (error) {
    if (error.code === "ResourceNotFound") error.message = "The entity does not exist any more.";
    throw error;
  }
}

/** The rows with whole values. */
async function fullRows(rows) {
  const list = [];
  for (const row of rows) {
    if (!row.props.some((p) => p.cut)) {
      list.push(row);
      continue;
    }
    const whole = await fullRow(row);
    list.push({ ...whole, props: whole.props.filter((p) => row.props.some((own) => own.name === p.name)) });
  }
  return list;
}

const copyAs = (format) => run(async () => {
  const rows = await fullRows(chosen());
  if (rows.length > 0) await copy(format === "CSV" ? toCSV(rows) : toJSON(rows), `${plural(rows.length, "entity", "entities")} as ${format}`);
});

async function edit(row) {
  const entity = await run(() => fullRow(row));
  if (document.querySelector("dialog[open]")) return; // a second click or key came before the answer
  if (entity) await editing(await editEntity(table, entity));
}

const create = async (draft) => editing(await editEntity(table, undefined, draft));

/** Continues with what the editor returned. */
async function editing(result) {
  if (result?.copy) await create(result.copy);
  else if (result?.reopen) await editing(await editEntity(table, result.reopen));
  else if (result) await refresh();
}

async function refresh() {
  const focused = byId("grid").contains(document.activeElement);
  await show();
  if (focused) grid.focus();
}

/** Operations on many rows, written in batches. The rows get their new ETags. */
class Batches {
  #rows; #make; #progress; #failures = []; #done = 0; #running;

  constructor(rows, make, progress) {
    this.#rows = rows;
    this.#make = make;
    this.#progress = progress;
  }

  /** Writes what is left, until the signal after the present batch. */
  run(signal) {
    this.#running = this.#write(signal);
    return this.#running;
  }

  async #write(signal) {
    while (this.#done < this.#rows.length && !signal.aborted) {
      const part = this.#rows.slice(this.#done, this.#done + batchSize);
      const { results } = await api.post("batch", { account: table.account, table: table.name, ops: part.map(this.#make) });
      results.forEach((result, i) => {
        if (result.message) this.#failures.push([part[i], result]);
        else part[i].etag = result.etag;
      });
      this.#done += part.length;
      this.#progress.value = this.#done;
    }
  }

  /** Waits for the batch under way, tells what was done and shows the rows again. */
  async finish(verb) {
    if (!this.#running) return;
    await this.#running.catch(() => {}); // the dialog has shown the error
    if (this.#failures.length > 0) await showFailures(this.#failures, this.#done, verb);
    else toast(`${verb} ${plural(this.#done, "entity", "entities")}${this.#done < this.#rows.length ? ` of ${count(this.#rows.length)}` : ""}`);
    await refresh();
  }
}

// Batches of the server are transactions of one partition.
const together = "Up to 100 of a partition are written together: none of them is if one has changed since the page was read.";

function showFailures(failures, all, verb) {
  const causes = failures.filter(([, failure]) => failure.code !== "NotExecuted");
  return dialog({
    title: `${count(failures.length)} of ${count(all)} failed`, wide: true,
    make: (close, heading) => h("div", { class: "body" }, heading,
      h("p", null, failures.length < all && `The others are ${verb.toLowerCase()}. `, together),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Failures" }, h("table", { class: "list" },
        h("thead", null, h("tr", null, ["PartitionKey", "RowKey", "Why"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, [...new Set([...causes, ...failures])].slice(0, 200).map(([entity, failure]) =>
          h("tr", null, h("td", null, bdi(entity.pk)), h("td", null, bdi(entity.rk)),
            h("td", { class: "wrap" }, `${failure.code}: ${failure.message}`, failure.detail && ` ${failure.detail}`)))))),
      h("div", { class: "actions" }, h("button", { class: "main", autofocus: true, onclick: () => close() }, "Close"))),
  });
}

async function deleteMany() {
  const rows = grid.selected;
  if (byId("delete").disabled) return;
  const progress = h("progress", { value: 0, max: rows.length, "aria-label": "Deleted" });
  const batches = new Batches(rows, (row) => ({ op: "delete", etag: row.etag, entity: { pk: row.pk, rk: row.rk, props: [] } }), progress);
  await confirm({
    title: `Delete ${plural(rows.length, "entity", "entities")}?`, button: "Delete",
    text: [h("span", null, "They are removed from "), bdi(table.name), ". ", together, progress],
    run: (closed) => batches.run(closed),
  });
  await batches.finish("Deleted");
}

async function setMany() {
  const rows = grid.selected;
  if (rows.length === 0) return;
  let batches;
  let setting; // what batches sets: after an error, the same goes on where it stopped
  await dialog({
    title: `Set a property of ${plural(rows.length, "entity", "entities")}`,
    make(close, heading, closed) {
      const name = h("input", { autofocus: true, list: "names", required: true, autocomplete: "off", spellcheck: "false" });
      const type = select({}, types.map((one) => [`Edm.${one}`, one]), "Edm.String");
      name.addEventListener("change", () => {
        const known = grid.columns.find((c) => c.name === name.value);
        if (known?.types.length > 0) type.value = known.types[0]; // a selected column can have no values
      });
      const value = h("input", { autocomplete: "off", spellcheck: "false", dir: "auto" });
      const progress = h("progress", { value: 0, max: rows.length, "aria-label": "Changed" });
      const problem = h("div", { "aria-live": "polite" });
      const go = h("button", { class: "main" }, "Set");
      return h("form", {
        onsubmit: async (event) => {
          event.preventDefault();
          go.disabled = true;
          try {
            const props = [{ name: name.value, type: type.value, value: value.value }];
            const before = setting;
            setting = JSON.stringify(props);
            if (setting !== before) {
              batches = new Batches(rows, (row) => ({ op: "merge", etag: row.etag, entity: { pk: row.pk, rk: row.rk, props } }), progress);
            }
            await batches.run(closed);
            close();
          } catch (error) {
            fill(problem, failure(error));
            go.disabled = false;
          }
        },
      }, heading, h("p", { class: "quiet" }, "Their other properties keep their values."),
      field("Property", name), field("Type", type), field("Value", value), progress, problem, actions(close, go));
    },
  });
  await batches?.finish("Changed");
}

let counting; // AbortController of the count under way

function endCount() {
  counting?.abort();
  counting = undefined;
  byId("count").textContent = "Count";
}

/** Counts the entities of the query; the server continues from a token after a while. */
async function countAll() {
  if (counting) {
    counting.abort();
    return;
  }
  const own = new AbortController();
  counting = own;
  byId("count").textContent = "Stop";
  const out = byId("counted");
  const { filter } = query;
  let sum = 0;
  let next = "";
  try {
    do {
      out.textContent = `${count(sum)}…`;
      const answer = await api.get("count", { ...at(), filter, next }, own.signal);
      sum += answer.count;
      next = answer.next;
    } while (next);
    out.textContent = `${plural(sum, "entity", "entities")} in all`;
  } catch (error) {
    if (counting === own) out.textContent = error.name === "AbortError" ? `${count(sum)} and more` : error.message;
  } finally {
    if (counting === own) endCount();
  }
}

async function readAccount() {
  const { accounts } = await api.get("accounts");
  const account = accounts.find((one) => one.name === table.account);
  can = account?.can ?? {};
  byId("new").disabled = can.insert === false && can.upsert === false;
  showSelection(grid.selected);
  if (page?.rows.length === 0) showEmpty();
}

byId("name").textContent = table.name;
byId("name").dir = "auto";
byId("crumb-account").textContent = table.account;
document.title = `${table.name} · Tablerock`;

byId("new").addEventListener("click", () => create());
byId("edit").addEventListener("click", () => { if (chosen()[0]) edit(chosen()[0]); });
byId("set").addEventListener("click", setMany);
byId("delete").addEventListener("click", deleteMany);
byId("copy-json").addEventListener("click", () => copyAs("JSON"));
byId("copy-csv").addEventListener("click", () => copyAs("CSV"));
byId("count").addEventListener("click", countAll);
byId("export").addEventListener("click", () => exportDialog(table, query));
byId("top").addEventListener("change", () => load(start));
byId("first").addEventListener("click", () => { tokens = [""]; counts = []; show(); });
byId("back").addEventListener("click", () => turn(-1));
byId("next").addEventListener("click", () => turn(1));
byId("jump").addEventListener("submit", (event) => {
  event.preventDefault();
  load({ pk: byId("jump-pk").value, rk: byId("jump-rk").value });
});

onKey("n", () => { if (!byId("new").disabled) create(); });
onKey("/", () => byId("filter").focus());
onKey("b", () => query.startCondition());
onKey("j", () => byId("jump-pk").focus());
onKey("c", countAll);
onKey("x", () => byId("export").click());
onKey("[", () => turn(-1));
onKey("]", () => turn(1));
onKey(".", () => grid.focus());
onKey("y", () => copyAs("JSON"));
onKey("Y", () => copyAs("CSV"));
onKey("Delete", deleteMany);
onZone(() => { if (page?.rows.length) grid.show(page, `Entities of ${table.name}`); });

tabs("table", table, query);
const account = run(readAccount);
const jump = parameters.has("pk") || parameters.has("rk") ? { pk: parameters.get("pk") ?? "", rk: parameters.get("rk") ?? "" } : {};
if ("pk" in jump) [byId("jump-pk").value, byId("jump-rk").value] = [jump.pk, jump.rk];
const opened = parameters.has("epk") && { pk: parameters.get("epk"), rk: parameters.get("erk") ?? "" };
query.started.finally(ready);
load(jump).then(() => account).then(() => { if (opened) edit(opened); });
