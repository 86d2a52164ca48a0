// The query builder: a filter as a tree of conditions. It edits a Condition of the API and
// calls changed with the new tree; the text of the filter belongs to the page.

import { h, fill, select, add } from "./dom.js";
import { types } from "./entity.js";

const operators = [["eq", "="], ["ne", "≠"], ["gt", ">"], ["ge", "≥"], ["lt", "<"], ["le", "≤"]];
const typeOptions = types.map((type) => [`Edm.${type}`, type]);
const groups = [["and", "all of"], ["or", "any of"]];

const isGroup = (c) => c.kind === "and" || c.kind === "or";

export class Builder {
  #box; #changed; #root = null; #names; #typeOf;

  /** box takes the controls; names is a datalist's id, typeOf returns the type of a property. */
  constructor(box, { changed, names, typeOf }) {
    this.#box = box;
    this.#changed = changed;
    this.#names = names;
    this.#typeOf = typeOf;
  }

  /** Shows a tree, null for no filter. path names the condition that is not valid. */
  show(tree, path) {
    this.#root = !tree || tree.kind === "true" ? { kind: "and", items: [] } : isGroup(tree) ? tree : { kind: "and", items: [tree] };
    this.#draw();
    if (path) this.mark(tree && isGroup(tree) ? path : [0, ...path]);
  }

  /** Adds an empty condition and moves the focus to it. */
  start() {
    this.#insert(this.#root, []);
  }

  /** Marks the condition at a path of the tree of the last change; undefined marks none. */
  mark(path) {
    for (const bad of this.#box.querySelectorAll("[aria-invalid]")) bad.removeAttribute("aria-invalid");
    if (!path) return;
    const key = (this.#unwrapped() ? [0, ...path] : path).join(".");
    this.#box.querySelector(`[data-path="${key}"] .operand`)?.setAttribute("aria-invalid", "true");
  }

  // A root with one condition is sent as that condition.
  #unwrapped() { return this.#root.items.length === 1; }

  get tree() {
    if (this.#root.items.length === 0) return { kind: "true", value: "" };
    return this.#unwrapped() ? this.#root.items[0] : this.#root;
  }

  #tell() { this.#changed(this.tree); }

  #draw() { fill(this.#box, this.#group(this.#root, [], null)); }

  #redraw(focus) {
    this.#draw();
    this.#tell();
    this.#box.querySelector(focus)?.focus();
  }

  // path is that of the group.
  #insert(group, path) {
    group.items.push({ kind: "compare", name: "", op: "eq", type: "Edm.String", value: "" });
    this.#draw();
    this.#box.querySelector(`[data-path="${[...path, group.items.length - 1].join(".")}"] .property-name`).focus();
  }

  #group(group, path, parent) {
    group.items ??= [];
    const kind = select({ "aria-label": "Combine conditions", onchange: () => { group.kind = kind.value; this.#tell(); } }, groups, group.kind);
    const at = path.length ? path.join(".") : "root";
    return h("div", { class: "group", role: "group", "aria-label": path.length ? `Group ${path.map((i) => i + 1).join(".")}` : "Conditions", "data-path": at },
      h("div", { class: "row" }, kind,
        h("button", { type: "button", class: "plain", onclick: () => this.#insert(group, path) }, "+ Condition"),
        h("button", { type: "button", class: "plain", onclick: () => {
          const inner = { kind: group.kind === "and" ? "or" : "and", items: [] };
          group.items.push(inner);
          this.#insert(inner, [...path, group.items.length - 1]);
        } }, "+ Group"),
        parent && this.#remove(parent, group, "Remove group")),
      group.items.map((item, i) => this.#item(item, [...path, i], group)));
  }

  #item(item, path, parent) {
    switch (item.kind) {
      case "and": case "or": return this.#group(item, path, parent);
      case "not": return this.#not(item, path, parent);
      case "compare": return this.#compare(item, path, parent);
      default: return h("div", { class: "row", "data-path": path.join(".") }, h("code", null, item.kind), this.#remove(parent, item, "Remove condition"));
    }
  }

  #not(item, path, parent) {
    return h("div", { class: "group", role: "group", "aria-label": "Not", "data-path": path.join(".") },
      h("div", { class: "row" }, h("strong", null, "not"), this.#remove(parent, item, "Remove not")),
      this.#item(item.items[0], [...path, 0], item));
  }

  #compare(item, path, parent) {
    const name = h("input", {
      class: "property-name", value: item.name, list: this.#names, "aria-label": "Property", placeholder: "Property", spellcheck: "false", autocomplete: "off",
      oninput: () => {
        item.name = name.value;
        const known = this.#typeOf(item.name);
        if (known && known !== item.type) {
          item.type = type.value = known;
          control(item.value);
        }
        this.#tell();
      },
    });
    const op = select({ "aria-label": "Operator", onchange: () => { item.op = op.value; this.#tell(); } }, operators, item.op);
    const type = select({ "aria-label": "Type", onchange: () => { item.type = type.value; control(item.value); this.#tell(); } }, typeOptions, item.type);
    const row = h("div", { class: "condition", role: "group", "aria-label": `Condition ${path.map((i) => i + 1).join(".")}`, "data-path": path.join(".") }, name, op, type);
    let value;
    const control = (text) => {
      value?.remove();
      const edit = () => { item.value = value.value; this.#tell(); };
      if (item.type === "Edm.Boolean") {
        item.value = text === "false" ? "false" : "true";
        value = select({ class: "operand", "aria-label": "Value", onchange: edit }, ["true", "false"], item.value);
      } else {
        value = h("input", { class: "operand", value: text, "aria-label": "Value", placeholder: "Value", dir: "auto", spellcheck: "false", autocomplete: "off", oninput: edit });
      }
      row.children[2].after(value);
    };
    control(item.value);
    return add(row, this.#remove(parent, item, "Remove condition"));
  }

  #remove(parent, item, label) {
    return h("button", { type: "button", class: "plain", "aria-label": label, title: label, onclick: () => {
      parent.items.splice(parent.items.indexOf(item), 1);
      this.#prune(this.#root);
      this.#redraw(".group select");
    } }, "×");
  }

  // A "not" without an operand has no meaning, and neither has an empty inner group.
  #prune(group) {
    group.items = group.items.filter((item) => {
      if (item.items) this.#prune(item);
      return !item.items || item.items.length > 0;
    });
  }
}
