// The query of a table: the text of the filter and the builder, which follow each other,
// the position of an error, and what the query reads.

import { byId, h, fill, add, notice } from "./dom.js";
import { count, duration, plural, percent } from "./format.js";
import { Builder } from "./builder.js";
import { parameters, table } from "./page.js";
import * as api from "./api.js";

const pause = 200; // milliseconds without a keystroke before the text is parsed
const setting = "tablerock-explain";

const scans = {
  nothing: "nothing: no key can match", points: "single entities", rows: "rows of a partition", partitions: "whole partitions", table: "the whole table",
};

export class Query {
  #builder; #timer; #turn = 0; #known = new Map(); #explaining; #stored = ""; #shown = ""; started;

  /** run loads the first page of the query. started ends when the builder shows the first filter. */
  constructor(run) {
    this.#builder = new Builder(byId("builder"), {
      names: "names", typeOf: (name) => this.#known.get(name), changed: (tree) => this.#later(() => this.#fromTree(tree)),
    });
    this.#setText(parameters.get("filter") ?? "");
    byId("select").value = parameters.get("select") ?? "";
    for (const [name, type] of [["PartitionKey", "Edm.String"], ["RowKey", "Edm.String"], ["Timestamp", "Edm.DateTime"]]) this.#known.set(name, type);
    this.#listen(run);
    this.#builder.show(null);
    this.started = this.filter ? this.#fromText() : Promise.resolve();
  }

  get filter() { return this.#text.trim(); }

  // A text area has "\n" for every end of a line; a text that nobody changes keeps its own.
  get #text() {
    const text = byId("filter").value;
    return text === this.#shown ? this.#stored : text;
  }

  #setText(text) {
    byId("filter").value = this.#stored = text;
    this.#shown = byId("filter").value;
  }

  get select() { return byId("select").value.split(",").map((name) => name.trim()).filter(Boolean).join(","); }

  #listen(run) {
    byId("filter").addEventListener("input", () => this.#later(() => this.#fromText()));
    byId("clear").addEventListener("click", () => {
      byId("select").value = "";
      this.#setText("");
      clearTimeout(this.#timer);
      this.#pending = undefined;
      this.#fromText();
      run();
    });
    byId("query").addEventListener("submit", async (event) => {
      event.preventDefault();
      await this.#flush();
      run();
    });
    byId("query").addEventListener("keydown", (event) => {
      const enter = event.key === "Enter" && (event.ctrlKey || event.metaKey);
      if (!enter) return;
      event.preventDefault();
      byId("query").requestSubmit();
    });
    const toggle = byId("explain-toggle");
    toggle.setAttribute("aria-pressed", String(localStorage.getItem(setting) !== "off"));
    toggle.addEventListener("click", () => {
      const on = toggle.getAttribute("aria-pressed") !== "true";
      toggle.setAttribute("aria-pressed", String(on));
      localStorage.setItem(setting, on ? "on" : "off");
      this.explain();
    });
  }

  startCondition() { this.#builder.start(); }

  /** Learns the names and types of the properties of a page. */
  learn(columns) {
    for (const c of columns) this.#known.set(c.name, c.types[0] ?? this.#known.get(c.name));
    fill(byId("names"), [...this.#known].slice(0, 300).map(([name]) => h("option", { value: name })));
  }

  #pending; #working;

  #later(step) {
    clearTimeout(this.#timer);
    this.#pending = step;
    this.#timer = setTimeout(() => this.#flush(), pause);
  }

  /** Ends all conversions, so that a query has what was typed last. */
  async #flush() {
    clearTimeout(this.#timer);
    const step = this.#pending;
    this.#pending = undefined;
    if (step) this.#working = step();
    await this.#working;
  }

  // A later change makes the answer to an earlier one obsolete.
  async #convert(body, use) {
    const turn = ++this.#turn;
    try {
      const answer = await api.post("filter", body);
      if (turn === this.#turn) use(answer);
    } catch (error) {
      if (turn === this.#turn) this.showError(error);
    }
  }

  async #fromText() {
    this.clearError();
    if (this.filter === "") {
      this.#turn++;
      this.#builder.show(null);
      return;
    }
    await this.#convert({ text: this.#text }, ({ tree, error }) => {
      if (error) this.showError(error);
      else this.#builder.show(tree);
    });
  }

  async #fromTree(tree) {
    this.clearError();
    if (tree.kind === "true") {
      this.#turn++;
      this.#setText("");
      return;
    }
    await this.#convert({ tree }, ({ text, error }) => {
      if (error) this.showError({ path: [], ...error });
      else this.#setText(text);
    });
  }

  clearError() {
    fill(byId("filter-error"));
    byId("filter").removeAttribute("aria-invalid");
    this.#builder.mark();
  }

  /** Shows a Failure of the filter with its position in the text, or in the builder. */
  showError(error) {
    this.clearError();
    const box = byId("filter-error");
    add(box, notice("error", error.message));
    if (error.path) {
      this.#builder.mark(error.path);
      return;
    }
    byId("filter").setAttribute("aria-invalid", "true");
    if (error.position === undefined) return;
    // Positions count UTF-16 code units, as strings of scripts do.
    const text = this.#text;
    const at = Math.max(0, Math.min(error.position, text.length));
    const size = Math.max(1, String.fromCodePoint(text.codePointAt(at) ?? 32).length);
    const hint = error.code === "NotImplemented" || /^(Syntax error|Expression expected)/.test(error.message);
    fill(box, notice("error", error.message, h("div", { class: "caret", dir: "ltr" },
      text.slice(Math.max(0, at - 30), at).replaceAll("\n", " "), h("mark", null, text.slice(at, at + size).trim() || "\u2423"), text.slice(at + size, at + 60).replaceAll("\n", " ")),
    h("p", { class: "hint" }, `Character ${at + 1} of ${text.length}`),
    hint && h("p", null, "A filter compares properties with constants by eq, ne, gt, ge, lt and le, and joins that by and, or and not, ",
      "as in ", h("code", null, "Age ge 30 and Name ne 'Ann'"), ". There are no functions.")));
  }

  /** Shows or hides the explanation: only queries with a filter have one. */
  prepareExplain() {
    this.#explaining?.abort();
    const box = byId("explain");
    box.hidden = byId("explain-toggle").getAttribute("aria-pressed") !== "true" || this.filter === "";
    if (!box.hidden) fill(box, h("h2", null, "Explain"), h("p", { class: "quiet" }, "Reading…"));
    return !box.hidden;
  }

  /** Explains the query, if the reader wants it. */
  async explain() {
    if (!this.prepareExplain()) return;
    const box = byId("explain");
    this.#explaining = new AbortController();
    try {
      const e = await api.get("explain", { a: table.account, t: table.name, filter: this.filter }, this.#explaining.signal);
      fill(box, h("h2", null, "Explain"), explanation(e));
    } catch (error) {
      if (error.name !== "AbortError") fill(box, h("h2", null, "Explain"), notice("error", error.message));
    }
  }
}

const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));

/** An Explanation as elements. */
export function explanation(e) {
  const g = e.groups;
  return h("div", { class: "stack" },
    e.warning && notice("warn", h("strong", null, e.warning), e.cure && h("p", null, e.cure)),
    h("dl", { class: "explain" },
      fact("Reads", scans[e.scan] ?? e.scan),
      fact("Examined", e.examined ? plural(e.examined, "entity", "entities") : "not known"),
      fact("Found", `${plural(e.found, "entity", "entities")}${e.completed ? "" : " so far"}`),
      fact("Time", `${duration(e.ms)}${e.completed ? "" : ", not finished"}`),
      g && fact("Groups read", `${count(g.read)} of ${count(g.total)}`),
      g && fact("Outside the ranges", count(g.outside)),
      g && fact("Left out by bounds", `${count(g.excluded)}${g.total ? ` (${percent(g.excluded, g.total)})` : ""}`)),
    h("details", null, h("summary", null, e.ranges.length === 1 ? ["Range: ", h("code", { dir: "auto" }, e.ranges[0])] : plural(e.ranges.length, "range of keys", "ranges of keys")),
      h("ul", null, e.ranges.slice(0, 50).map((range) => h("li", null, h("code", { dir: "auto" }, range))))));
}
