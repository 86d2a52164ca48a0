// What all pages with a session have: the zone of times, logging out and shortcuts.

import { byId, toast } from "./dom.js";
import { localTimes, setLocalTimes } from "./format.js";
import { onKey } from "./shortcuts.js";
import * as api from "./api.js";

const listeners = [];

/** Runs a function after the reader changed the zone of times. */
export function onZone(run) { listeners.push(run); }

function showZone() { byId("zone").textContent = localTimes() ? "Local time" : "UTC"; }

function toggleZone() {
  setLocalTimes(!localTimes());
  showZone();
  for (const run of listeners) run();
}

async function logout() {
  try {
    await api.post("logout", {});
    location.assign("/ui/login");
  } catch (error) {
    toast(error.message, "error");
  }
}

byId("zone").addEventListener("click", toggleZone);
byId("logout").addEventListener("click", logout);
showZone();

/** Shows the page. Call it once the first content is there; else CSS shows it after a second. */
export function ready() { byId("main").classList.remove("starting"); }

const go = (path) => () => location.assign(path);
onKey("g t", go("/ui/"));
onKey("g e", go("/ui/engine"));
onKey("?", go("/ui/keys"));
onKey("z", toggleZone);

/** The parameters of the page's URL. */
export const parameters = new URLSearchParams(location.search);

/** The table of the page's URL. */
export const table = { account: parameters.get("account") ?? "", name: parameters.get("table") ?? "" };
