// Elements, dialogs and messages. Text from the server becomes text nodes or
// attributes, never markup, so a hostile name or value has no effect.

const SVG = "http://www.w3.org/2000/svg";

/** Returns the element with this id. */
export const byId = (id) => document.getElementById(id);

/** Adds children to an element: nodes, texts, arrays; null and false are left out. */
export function add(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in properties) element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  return add(element, children);
}

const properties = { value: 1, checked: 1, selected: 1, disabled: 1, indeterminate: 1 };

/** Makes an HTML element: h("button", {class: "main", onclick: f}, "Save"). */
export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);

/** Makes an SVG element. */
export const svg = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, ...children);
}

/** Text of people, isolated from the direction of its surroundings. */
export const bdi = (text) => h("bdi", null, text);

/** A labelled control: the name, the control and a hint. */
export function field(name, control, hint) {
  return h("label", { class: "field" }, h("span", null, name), control, hint && h("small", null, hint));
}

/** A select with options as texts or [value, text] pairs. */
export function select(attributes, options, value) {
  const list = options.map((option) => {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: key, selected: key === value }, text);
  });
  return h("select", attributes, list);
}

/** A message in place: kind is "", "error", "warn" or "good". */
export const notice = (kind, ...children) =>
  h("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" }, h("div", null, children));

/** A failed request as a message. detail is false where another element has it. */
export const failure = (error, detail = error.detail) =>
  notice("error", error.code && h("strong", null, `${error.code}: `), error.message, detail && h("p", null, detail));

let toastTimer;

/** Shows a short message at the edge of the window and reads it to a screen reader. */
export function toast(text, kind = "") {
  const box = byId("toast");
  box.className = `toast ${kind}`;
  box.textContent = text;
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { box.hidden = true; }, kind === "error" ? 12000 : 5000);
}

/** Reads a text to a screen reader without showing it. */
export function announce(text) { byId("announcer").textContent = text; }

let dialogs = 0; // gives each dialog the id of its title: an editor can be open below a question

/**
 * Opens a dialog. make(close, heading, closed) returns its content; closed is a signal. The
 * promise has the value given to close, or undefined after Escape. The focus returns to the
 * element that had it.
 */
export function dialog({ title, wide = false, make }) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let result;
    const closed = new AbortController();
    const id = `dialog-title-${++dialogs}`;
    const box = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": id });
    const close = (value) => { result = value; box.close(); };
    add(box, make(close, h("h2", { id }, title), closed.signal));
    box.addEventListener("close", () => {
      closed.abort();
      box.remove();
      if (before?.isConnected) before.focus({ preventScroll: true });
      resolve(result);
    });
    document.body.append(box);
    box.showModal();
    box.querySelector("[autofocus]")?.focus();
  });
}

/** The last row of a dialog, with Cancel before the other buttons. */
export const actions = (close, ...buttons) =>
  h("div", { class: "actions" }, h("button", { type: "button", onclick: () => close() }, "Cancel"), buttons);

/**
 * Asks for a dangerous step. With word, the button works after the word was typed.
 * Returns whether run succeeded; its error is shown in the dialog, or after that was closed
 * at the edge of the window. run gets a signal that the dialog was closed.
 */
export async function confirm({ title, text, word, button, run }) {
  let running; // the promise of the last run, with whether it succeeded
  const done = await dialog({
    title,
    make(close, heading, closed) {
      const problem = h("div", { "aria-live": "polite" });
      const go = h("button", { class: "danger", disabled: Boolean(word) }, button);
      const typed = word && h("input", {
        autofocus: true, autocomplete: "off", spellcheck: "false", dir: "auto",
        oninput: () => { go.disabled = typed.value !== word; },
      });
      const attempt = async () => {
        go.disabled = true;
        try {
          await run(closed);
          close(true);
          return true;
        } catch (error) {
          if (closed.aborted) toast(error.message, "error");
          else fill(problem, notice("error", error.message));
          go.disabled = false;
          return undefined;
        }
      };
      return h("form", {
        onsubmit: (event) => {
          event.preventDefault();
          if (!go.disabled) running = attempt();
        },
      }, heading, h("p", null, text), typed && field(["Type ", bdi(word), " to confirm"], typed), problem, actions(close, go));
    },
  });
  return done ?? running; // Escape does not stop what is under way
}

/** Copies a text to the clipboard; browsers allow it on loopback and over TLS only. */
export async function copy(text, what) {
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copyBySelection(text);
    toast(`Copied ${what}`);
  } catch {
    toast("The browser did not allow the page to copy", "error");
  }
}

// On a plain HTTP address other than loopback there is no clipboard API.
function copyBySelection(text) {
  const area = h("textarea", { class: "sr", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not allowed");
}

/** Offers a text as a file. */
export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
