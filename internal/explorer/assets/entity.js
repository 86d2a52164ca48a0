// The editor of an entity: all eight types, insert, merge, replace and delete, and
// both versions side by side after the entity changed meanwhile.

import { h, add, fill, field, select, failure, bdi, dialog, confirm, copy, toast } from "./dom.js";
import { time, times, bytes } from "./format.js";
import { parseJSON, jsonTree } from "./tree.js";
import * as api from "./api.js";

export const types = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"];

/** The name of a type without "Edm.". */
export const short = (type) => type.replace("Edm.", "");

const examples = {
  String: "text", Int32: "-2147483648 to 2147483647", Int64: "up to 9223372036854775807", Double: "1.5, NaN, Infinity",
  Boolean: "", DateTime: "2006-01-02T15:04:05Z, in UTC", Guid: "00000000-0000-0000-0000-000000000000", Binary: "base64",
};

class PropertyRow {
  #stored = ""; #shown = ""; // a text, and what the control made of it

  constructor(property, remove) {
    this.name = h("input", { value: property.name, "aria-label": "Property name", placeholder: "Name", spellcheck: "false", autocomplete: "off", dir: "auto" });
    this.type = select({ "aria-label": "Type", onchange: () => this.#control(this.text) }, types.map((type) => [`Edm.${type}`, type]), property.type);
    this.cell = h("div", { class: "cell" });
    this.problem = h("div", { class: "problem", hidden: true });
    this.element = h("div", { class: "property", role: "group" }, this.name, this.type, this.cell,
      h("button", { type: "button", class: "plain", "aria-label": "Remove property", title: "Remove property", onclick: () => remove(this) }, "×"), this.problem);
    this.name.addEventListener("input", () => this.#label());
    this.#control(property.value);
    this.#label();
  }

  // A text area has "\n" for every end of a line. A text that nobody changes keeps its own,
  // and a changed one those of the text that was opened if they were all "\r\n".
  get text() {
    const text = this.value.value;
    if (text === this.#shown) return this.#stored;
    return /\r\n/.test(this.#stored) && !/\r(?!\n)|(?<!\r)\n/.test(this.#stored) ? text.replaceAll("\n", "\r\n") : text;
  }

  get property() { return { name: this.name.value, type: this.type.value, value: this.text }; }

  #label() {
    this.element.setAttribute("aria-label", `Property ${this.name.value || "without a name"}`);
    this.name.title = this.name.value;
  }

  #control(text) {
    const attributes = { "aria-label": "Value", value: text, placeholder: examples[short(this.type.value)], spellcheck: "false", autocomplete: "off", dir: "auto" };
    switch (short(this.type.value)) {
      case "Boolean":
        this.value = select({ "aria-label": "Value" }, ["true", "false"], text === "false" ? "false" : "true");
        break;
      case "String": case "Binary":
        this.value = h("textarea", { ...attributes, rows: 1 });
        break;
      default:
        this.value = h("input", attributes);
    }
    fill(this.cell, this.value);
    this.#shown = this.value.value;
    this.#stored = this.value instanceof HTMLTextAreaElement ? text : this.#shown;
    if (this.type.value === "Edm.DateTime") {
      const also = h("small", { class: "hint" });
      const tell = () => { also.textContent = Number.isNaN(Date.parse(this.text)) ? "" : times(this.text).split("\n")[1]; };
      this.value.addEventListener("input", tell);
      tell();
      add(this.cell, also);
    }
  }

  /** Shows what is wrong with the value, or with the name; "" for nothing. */
  mark(message, ofName) {
    this.problem.textContent = message;
    this.problem.hidden = !message;
    for (const control of [this.name, this.value]) control.removeAttribute("aria-invalid");
    if (message) (ofName ? this.name : this.value).setAttribute("aria-invalid", "true");
  }
}

/**
 * Opens the editor. entity is what the table has, or undefined for a new one; draft has
 * the first values of a new one. The promise has "saved" or "deleted", or undefined.
 */
export async function editEntity(table, entity, draft) {
  let editor;
  const leave = (event) => { if (editor.changed) event.preventDefault(); };
  addEventListener("beforeunload", leave);
  const result = await dialog({
    title: entity ? "Edit entity" : "New entity",
    make: (close, heading, closed) => (editor = new Editor(table, entity, draft, close, closed)).form(heading),
  });
  removeEventListener("beforeunload", leave);
  return result ?? (await editor.writing); // Escape does not stop what is under way
}

class Editor {
  #first; #table; #entity; #close; #closed; #rows = []; #list; #problem; #keys; #etag; #mode; #save;
  writing; // the promise of the last write, with "saved" if it succeeded

  constructor(table, entity, draft, close, closed) {
    this.#table = table;
    this.#closed = closed;
    this.#entity = entity;
    this.#etag = entity?.etag;
    this.#close = close;
    const start = entity ?? draft ?? { pk: "", rk: "", props: [] };
    const key = (name, value, focus) => h("input", { name, value, readonly: Boolean(entity), autofocus: focus, spellcheck: "false", autocomplete: "off", dir: "auto" });
    this.#keys = { pk: key("PartitionKey", start.pk, !entity), rk: key("RowKey", start.rk, false) };
    this.#list = h("div", { class: "properties" });
    for (const p of start.props) this.#add(p);
    this.#problem = h("div", { "aria-live": "polite" });
    const modes = entity
      ? [["merge", "Merge: keep other properties"], ["replace", "Replace: remove other properties"]]
      : [["insert", "Insert: fail if it exists"], ["insertOrMerge", "Insert or merge"], ["insertOrReplace", "Insert or replace"]];
    this.#mode = select({ "aria-label": "How to save" }, modes, entity ? "replace" : "insert");
    this.#first = JSON.stringify(this.#value());
  }

  /** Whether to leave the page would lose something. */
  get changed() { return JSON.stringify(this.#value()) !== this.#first; }

  form(heading) {
    const entity = this.#entity;
    this.#save = h("button", { class: "main" }, "Save");
    const plus = h("button", { type: "button", onclick: () => this.#add({ name: "", type: "Edm.String", value: "" }).name.focus() }, "Add property");
    const form = h("form", { class: "entity", onsubmit: (event) => { event.preventDefault(); this.writing = this.#submit(); } },
      heading,
      h("div", { class: "row" }, h("div", { class: "grow" }, field("PartitionKey", this.#keys.pk)), h("div", { class: "grow" }, field("RowKey", this.#keys.rk))),
      entity && h("p", { class: "quiet" }, "Timestamp ", h("span", { title: times(entity.timestamp) }, time(entity.timestamp))),
      this.#list, h("div", null, plus), this.#problem,
      h("div", { class: "actions" },
        entity && h("button", { type: "button", class: "danger", onclick: () => this.#delete() }, "Delete…"),
        entity && h("button", { type: "button", onclick: () => this.#close({ copy: this.#value() }) }, "Copy as new…"),
        h("span", { class: "grow" }), this.#mode, h("button", { type: "button", onclick: () => this.#close() }, "Cancel"), this.#save));
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    if (entity) (this.#rows[0]?.value ?? plus).setAttribute("autofocus", "");
    return form;
  }

  #add(property) {
    const row = new PropertyRow(property, () => {
      this.#rows.splice(this.#rows.indexOf(row), 1);
      row.element.remove();
    });
    this.#rows.push(row);
    this.#list.append(row.element);
    return row;
  }

  #value() {
    return { pk: this.#keys.pk.value, rk: this.#keys.rk.value, props: this.#rows.map((row) => row.property) };
  }

  #show(error) {
    for (const row of this.#rows) {
      row.mark(error.detail && row.name.value === (error.property ?? "") ? error.detail : "", /^(PropertyName|Duplicate)/.test(error.code));
    }
    for (const key of Object.values(this.#keys)) key.setAttribute("aria-invalid", key.name === error.property);
    fill(this.#problem, this.#rows.some((row) => !row.problem.hidden) ? failure(error, false) : failure(error));
    this.#problem.scrollIntoView({ block: "nearest" });
  }

  async #submit(ifMatch = this.#etag) {
    this.#save.disabled = true;
    try {
      const mode = this.#mode.value;
      await api.write(this.#table, mode, this.#value(), mode === "merge" || mode === "replace" ? ifMatch : undefined);
      toast("Saved");
      this.#close("saved");
      return "saved";
    } catch (error) {
      if (this.#closed.aborted) toast(error.message, "error");
      else if (error.conflict) return await this.#conflict(error);
      else this.#show(error);
    } finally {
      this.#save.disabled = false;
    }
    return undefined;
  }

  async #delete() {
    let conflict;
    const gone = await confirm({
      title: "Delete this entity?", button: "Delete",
      text: [bdi(this.#entity.pk), " / ", bdi(this.#entity.rk), " is removed from ", bdi(this.#table.name), "."],
      run: async () => {
        try {
          await api.write(this.#table, "delete", this.#entity, this.#etag);
        } catch (error) {
          if (!error.conflict) throw error;
          conflict = error;
        }
      },
    });
    if (conflict) this.writing = this.#conflict(conflict);
    else if (gone) {
      toast("Deleted");
      this.#close("deleted");
    }
  }

  async #conflict(error) {
    const choice = await showConflict(this.#entity, this.#value(), error.theirs);
    if (choice === "mine") {
      this.#etag = error.theirs?.etag;
      if (!this.#etag) this.#mode.replaceChildren(h("option", { value: "insert" }, "Insert: it was deleted"));
      return this.#submit(this.#etag);
    }
    if (choice === "theirs") this.#close(error.theirs ? { reopen: error.theirs } : "deleted");
    return undefined;
  }
}

const longest = 2000; // characters of a value beside its other versions

/** Where two texts differ, or 0. */
function difference(a, b) {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return a === b ? 0 : i;
}

/** A text, or as much of it as is shown around the position from. */
function excerpt(text, from) {
  const start = text.length <= longest || from < longest / 2 ? 0 : from - longest / 2;
  return `${start > 0 ? "…" : ""}${text.slice(start, start + longest)}${start + longest < text.length ? "…" : ""}`;
}

/** Shows the versions of an entity; the promise has "mine", "theirs" or undefined. */
function showConflict(opened, mine, stored) {
  const names = [...new Set([opened, mine, stored].flatMap((one) => one?.props.map((p) => p.name) ?? []))];
  const at = (entity, name) => entity?.props.find((p) => p.name === name);
  const cell = (p, from) => h("td", null, p ? [bdi(excerpt(p.value, from)), " ", h("span", { class: "odd-type" }, short(p.type))] : h("span", { class: "none" }, "not set"));
  const rows = names.map((name) => {
    const [a, b] = [at(mine, name), at(stored, name)];
    const from = a && b ? difference(a.value, b.value) : 0;
    return h("tr", { class: a?.type === b?.type && a?.value === b?.value ? null : "differs" },
      h("th", { scope: "row" }, bdi(name)), cell(at(opened, name), from), cell(a, from), cell(b, from));
  });
  return dialog({
    title: stored ? "The entity changed meanwhile" : "The entity was deleted meanwhile",
    wide: true,
    make: (close, heading) => h("div", { class: "body conflict" }, heading,
      h("p", null, `Someone else ${stored ? "wrote" : "deleted"} it after you opened it. Nothing of yours is stored yet.`),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Versions" }, h("table", { class: "sides" },
        h("thead", null, h("tr", null, ["Property", "As you opened it", "Yours", "Stored now"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, h("tr", null, h("th", { scope: "row" }, "Timestamp"), h("td", null, time(opened?.timestamp)), h("td", null, "–"),
          h("td", null, stored ? time(stored.timestamp) : "deleted")), rows))),
      h("div", { class: "actions" },
        h("button", { onclick: () => close() }, "Back to the editor"),
        h("button", { onclick: () => close("theirs") }, stored ? "Take the stored one" : "Leave it deleted"),
        h("button", { class: "main", onclick: () => close("mine") }, stored ? "Store mine over it" : "Insert mine again"))),
  });
}

/** Shows a value in full, a JSON text as a tree too. */
export function showValue(row, property) {
  const { name, value } = property;
  const type = short(property.type);
  const json = type === "String" ? parseJSON(value) : undefined;
  return dialog({
    title: name,
    make: (close, heading) => h("div", { class: "body" }, heading,
      h("p", { class: "quiet" }, `${type}, ${bytes(new TextEncoder().encode(value).length)} as text, of `, bdi(row.pk), " / ", bdi(row.rk)),
      json !== undefined && jsonTree(json),
      type === "DateTime" ? h("pre", { class: "value", tabindex: "0" }, times(value))
        : json === undefined ? h("pre", { class: "value", tabindex: "0", dir: "auto" }, value)
          : h("details", null, h("summary", null, "As text"), h("pre", { class: "value", tabindex: "0", dir: "auto" }, value)),
      h("div", { class: "actions" },
        h("button", { autofocus: json === undefined, onclick: () => copy(value, "the value") }, "Copy"),
        h("button", { class: "main", onclick: () => close() }, "Close"))),
  });
}
