// A JSON value as a tree that the keyboard can walk.

import { h, bdi } from "./dom.js";

const batch = 200; // children shown at a time

/** A number as its text. */
class Digits {
  constructor(text) { this.text = text; }
}

/** Returns the parsed JSON if the text is an object or array, else undefined. */
export function parseJSON(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    // The text of a number stays: a Number has fewer digits than some.
    return JSON.parse(text, (_, value, context) => (typeof value === "number" && context?.source ? new Digits(context.source) : value));
  } catch {
    return undefined;
  }
}

/** Returns a tree of a parsed JSON value. The first level is open. */
export function jsonTree(value) {
  const root = h("ul", { role: "tree", "aria-label": "JSON value" }, node("", value, 0));
  root.firstChild.tabIndex = 0;
  root.addEventListener("keydown", onKey);
  root.addEventListener("click", (event) => {
    const label = event.target.closest(".label");
    if (!label) return;
    const item = label.parentElement;
    if (item.hasAttribute("aria-expanded")) toggle(item);
    focus(root, item);
  });
  return h("div", { class: "tree" }, root);
}

function node(name, value, depth) {
  const member = name !== "" && [h("span", { class: "member" }, bdi(name)), ": "];
  if (value === null || typeof value !== "object" || value instanceof Digits) {
    return h("li", { role: "treeitem", tabindex: "-1" }, h("span", { class: "label" }, member, bdi(value instanceof Digits ? value.text : JSON.stringify(value))));
  }
  const entries = Object.entries(value);
  const brackets = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const list = h("ul", { role: "group" });
  const item = h("li", { role: "treeitem", tabindex: "-1", "aria-expanded": String(depth === 0) },
    h("span", { class: "label" }, member, h("span", { class: "quiet" }, brackets)), list);
  let shown = 0;
  item.more = () => {
    for (const [key, child] of entries.slice(shown, shown + batch)) list.append(node(key, child, depth + 1));
    shown = Math.min(shown + batch, entries.length);
    if (shown < entries.length) {
      const rest = h("li", { role: "treeitem", tabindex: "-1" }, h("span", { class: "label member" }, `… ${entries.length - shown} more`));
      rest.addEventListener("click", () => { rest.remove(); item.more(); }, { once: true });
      list.append(rest);
    }
  };
  if (depth === 0) item.more();
  return item;
}

function toggle(item, open = item.getAttribute("aria-expanded") !== "true") {
  if (open && item.lastElementChild.childElementCount === 0) item.more();
  item.setAttribute("aria-expanded", String(open));
}

function focus(root, item) {
  for (const old of root.querySelectorAll('[tabindex="0"]')) old.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}

function onKey(event) {
  const root = event.currentTarget;
  const item = event.target.closest('[role="treeitem"]');
  const visible = [...root.querySelectorAll('[role="treeitem"]')].filter((one) => one.offsetParent !== null);
  const at = visible.indexOf(item);
  const expanded = item.getAttribute("aria-expanded");
  let to;
  switch (event.key) {
    case "ArrowDown": to = visible[at + 1]; break;
    case "ArrowUp": to = visible[at - 1]; break;
    case "Home": to = visible[0]; break;
    case "End": to = visible.at(-1); break;
    case "ArrowRight":
      if (expanded === "false") toggle(item, true);
      else if (expanded) to = item.lastElementChild.firstElementChild;
      break;
    case "ArrowLeft":
      if (expanded === "true") toggle(item, false);
      else to = item.parentElement.closest('[role="treeitem"]');
      break;
    case "Enter": case " ":
      if (expanded) toggle(item);
      else item.click();
      break;
    default: return;
  }
  event.preventDefault();
  event.stopPropagation();
  if (to) focus(root, to);
}
