// A grid over one page of entities: a column for each property with its type, a cell
// that the arrow keys move, and selected rows.

import { h, fill, bdi } from "./dom.js";
import { time, times } from "./format.js";
import { short } from "./entity.js";

const longest = 300; // characters of a value in a cell; the details show all

const system = [
  { name: "PartitionKey", types: ["Edm.String"], key: true },
  { name: "RowKey", types: ["Edm.String"], key: true },
  { name: "Timestamp", types: ["Edm.DateTime"] },
];

/** The property of a row, also a system property, or undefined. */
export function propertyOf(row, name) {
  switch (name) {
    case "PartitionKey": return { name, type: "Edm.String", value: row.pk };
    case "RowKey": return { name, type: "Edm.String", value: row.rk };
    case "Timestamp": return { name, type: "Edm.DateTime", value: row.timestamp };
    default: return row.props.find((p) => p.name === name);
  }
}

export class Grid {
  #frame; #events; #rows = []; #columns = []; #selected = new Set(); #table;

  /** events: open(row), value(row, property), selected(rows), link(row). */
  constructor(frame, events) {
    this.#frame = frame;
    this.#events = events;
  }

  get rows() { return this.#rows; }
  get columns() { return this.#columns; }

  /** The selected rows, in the order of the page. */
  get selected() { return this.#rows.filter((_, i) => this.#selected.has(i)); }

  /** The row with the focus, or undefined. */
  get current() {
    const tr = this.#table?.querySelector('[tabindex="0"]')?.closest("tr");
    return tr && this.#rows[Number(tr.getAttribute("aria-rowindex")) - 2];
  }

  /** Shows an EntityPage. label names the grid. */
  show(page, label) {
    const rows = page.rows;
    this.#rows = rows;
    this.#columns = [...system, ...page.columns];
    this.#selected.clear();
    this.#table = h("table", {
      class: "grid", role: "grid", "aria-label": label, "aria-multiselectable": "true",
      "aria-rowcount": rows.length + 1, "aria-colcount": this.#columns.length + 1,
    }, this.#head(), h("tbody", null, rows.map((row, i) => this.#row(row, i))));
    this.#table.addEventListener("keydown", (event) => this.#onKey(event));
    this.#table.addEventListener("focusin", (event) => this.#onFocus(event));
    this.#table.addEventListener("dblclick", (event) => this.#onDouble(event));
    fill(this.#frame, this.#table);
    this.#frame.scrollTop = 0;
    const first = this.#table.querySelector("tbody td:nth-child(2)");
    if (first) first.tabIndex = 0;
    this.#events.selected([]);
  }

  /** Shows content instead of rows. */
  showNothing(...content) {
    this.#rows = [];
    this.#columns = [];
    this.#selected.clear();
    this.#table = null;
    fill(this.#frame, h("div", { class: "empty" }, content));
    this.#events.selected([]);
  }

  focus() { this.#table?.querySelector('[tabindex="0"]')?.focus(); }

  #head() {
    const all = h("input", { type: "checkbox", tabindex: "-1", "aria-label": "Select all rows of this page", onchange: () => this.#selectAll(all.checked) });
    return h("thead", null, h("tr", { "aria-rowindex": 1 },
      h("th", { scope: "col", tabindex: "-1" }, all),
      this.#columns.map((c) => h("th", { scope: "col", tabindex: "-1", class: c.key ? "key" : null, title: c.name },
        bdi(c.name), h("span", { class: "type" }, c.types.map(short).join(", "))))));
  }

  #row(row, i) {
    const box = h("input", { type: "checkbox", tabindex: "-1", "aria-label": `Select row ${i + 1}`, onchange: () => this.#select(i, box.checked) });
    return h("tr", { "aria-rowindex": i + 2, "aria-selected": "false" },
      h("td", { tabindex: "-1", role: "gridcell" }, box), this.#columns.map((c) => this.#cell(row, c)));
  }

  #cell(row, column) {
    const p = propertyOf(row, column.name);
    if (!p) return h("td", { tabindex: "-1", role: "gridcell", class: "none", "aria-label": "no value" });
    const attributes = { tabindex: "-1", role: "gridcell" };
    let content = p.value.length > longest || p.cut ? `${p.value.slice(0, longest)}…` : p.value;
    switch (short(p.type)) {
      case "Int32": case "Int64": case "Double": attributes.class = "number"; break;
      case "DateTime":
        attributes.title = times(p.value);
        content = time(p.value);
        break;
      case "Binary": case "Guid": attributes.class = "mono"; break;
      default:
    }
    if (content.trim() === "") content = h("span", { class: "none" }, content === "" ? "empty" : "white space");
    if (column.key) {
      attributes.class = "key";
      if (column.name === "RowKey") content = h("a", { href: this.#events.link(row), tabindex: "-1", onclick: (event) => this.#open(event, row) }, content);
    }
    const odd = column.types.length > 1 && p.type !== column.types[0] && h("span", { class: "odd-type" }, short(p.type));
    return h("td", attributes, h("bdi", null, content), odd);
  }

  // The link is for another tab: in this one the page would begin again at its first rows.
  #open(event, row) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.#events.open(row);
  }

  #select(i, on) {
    if (on) this.#selected.add(i);
    else this.#selected.delete(i);
    const tr = this.#table.tBodies[0].rows[i];
    tr.setAttribute("aria-selected", String(on));
    tr.querySelector("input").checked = on;
    const all = this.#table.tHead.querySelector("input");
    all.checked = this.#selected.size === this.#rows.length;
    all.indeterminate = !all.checked && this.#selected.size > 0;
    this.#events.selected(this.selected);
  }

  #selectAll(on) { this.#rows.forEach((_, i) => this.#select(i, on)); }

  #onFocus(event) {
    const cell = event.target.closest("td, th");
    if (!cell) return;
    for (const old of this.#table.querySelectorAll('[tabindex="0"]')) old.tabIndex = -1;
    cell.tabIndex = 0;
  }

  #onDouble(event) {
    const cell = event.target.closest("td");
    if (cell && cell.cellIndex > 0) this.#value(cell);
  }

  #value(cell) {
    const row = this.#rows[cell.parentElement.rowIndex - 1];
    const p = propertyOf(row, this.#columns[cell.cellIndex - 1].name);
    if (p) this.#events.value(row, p);
  }

  #onKey(event) {
    const cell = event.target.closest("td, th");
    if (!cell || event.altKey) return;
    const rows = this.#table.rows;
    let r = cell.parentElement.rowIndex;
    let c = cell.cellIndex;
    const step = event.ctrlKey || event.metaKey;
    const rtl = getComputedStyle(this.#table).direction === "rtl" ? -1 : 1;
    switch (event.key) {
      case "ArrowDown": r++; break;
      case "ArrowUp": r--; break;
      case "ArrowRight": c += rtl; break;
      case "ArrowLeft": c -= rtl; break;
      case "PageDown": r += 15; break;
      case "PageUp": r -= 15; break;
      case "Home": c = 0; if (step) r = 1; break;
      case "End": c = this.#columns.length; if (step) r = rows.length - 1; break;
      case " ":
        if (r > 0) this.#select(r - 1, !this.#selected.has(r - 1));
        else this.#selectAll(this.#selected.size < this.#rows.length);
        event.preventDefault();
        return;
      case "Enter":
        if (r > 0) this.#events.open(this.#rows[r - 1]);
        event.preventDefault();
        return;
      case "v":
        if (step || r === 0 || c === 0) return;
        this.#value(cell);
        event.preventDefault();
        return;
      case "a":
        if (!step) return;
        this.#selectAll(true);
        event.preventDefault();
        return;
      default: return;
    }
    event.preventDefault();
    const to = rows[Math.max(0, Math.min(r, rows.length - 1))].cells[Math.max(0, Math.min(c, this.#columns.length))];
    to.focus({ preventScroll: false });
    to.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
