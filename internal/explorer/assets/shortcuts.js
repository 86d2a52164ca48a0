// Keyboard shortcuts. A single letter works when no control that takes text has the
// focus. The page of keys lists the same shortcuts.

const shortcuts = new Map();

/** Runs a function on a key: a letter such as "n" or "?", or two after each other, "g d". */
export function onKey(key, run) { shortcuts.set(key, run); }

let first = "";
let firstTime = 0;

function takesText(element) {
  return element instanceof HTMLElement &&
    (element.isContentEditable || /^(TEXTAREA|SELECT)$/.test(element.tagName) ||
      (element.tagName === "INPUT" && !/^(checkbox|radio|button|submit|file)$/.test(element.type)));
}

// Many keyboards have a sign such as "[" behind Option, or behind AltGr, which is Ctrl and Alt.
const commands = ({ key, ctrlKey, altKey, metaKey }) =>
  metaKey || (ctrlKey && !altKey) || (altKey && (/^[a-z0-9]$/i.test(key) || key.length > 1));

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || commands(event)) return;
  if (takesText(event.target) || document.querySelector("dialog[open]")) return;
  const pair = first && event.timeStamp - firstTime < 1500 ? `${first} ${event.key}` : "";
  first = "";
  const run = shortcuts.get(pair) ?? shortcuts.get(event.key);
  if (run) {
    event.preventDefault();
    run();
  } else if ([...shortcuts.keys()].some((key) => key.startsWith(`${event.key} `))) {
    [first, firstTime] = [event.key, event.timeStamp];
  }
});

// A key that a shortcut has taken types nothing. Chromium seldom gives its text to the
// field of the dialog that the shortcut opened, although the default was prevented.
let down = null;
window.addEventListener("keydown", (event) => { down = event; }, true);
window.addEventListener("keypress", (event) => {
  if (down?.defaultPrevented && down.code === event.code) event.preventDefault();
}, true);
