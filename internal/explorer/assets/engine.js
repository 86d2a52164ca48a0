// The page of the engine: meters over the last minutes, the log, memtables and tiers to
// scale, the last requests and the slow queries. It listens while it is visible.

import { byId, h, fill, bdi } from "./dom.js";
import { count, duration, time, times } from "./format.js";
import { Meters } from "./meters.js";
import { EngineView } from "./levels.js";
import { backends } from "./pool.js";
import { onKey } from "./shortcuts.js";
import { onZone, ready } from "./page.js";
import * as api from "./api.js";

const meters = new Meters(byId("meters"));
const engines = new Map(); // by account
let source;
let paused = false;
let newest; // the last Live

function connect() {
  source?.close();
  source = undefined;
  if (paused || document.hidden) return;
  source = api.events();
  source.addEventListener("live", (event) => show(JSON.parse(event.data)));
  source.addEventListener("error", lost);
}

// The browser connects again after a lost connection, but not after an answer that is no
// stream: the session may have ended, and then the next request shows the login.
function lost(event) {
  byId("state").textContent = "No connection, trying again…";
  if (event.target.readyState !== EventSource.CLOSED) return;
  setTimeout(async () => {
    const { accounts } = await api.get("accounts").catch(() => ({ accounts: [] })); // the next event of the stream tells
    if (event.target !== source) return;
    if (accounts.length > 0 && accounts.every(({ engine, sas, can }) => !engine && !sas && !can.list)) {
      byId("state").textContent = "A signature for a table does not show the engine.";
    } else {
      connect();
    }
  }, 2000);
}

function show(live) {
  newest = live;
  byId("state").textContent = `At ${time(live.at)}`.replace(/\.\d+/, "");
  meters.add(live);
  showEngines(live);
  showRequests(live.last ?? []);
  showShapes(live.slow ?? []);
  ready();
}

function showEngines(live) {
  const list = live.engines ?? [];
  const names = list.map((engine) => engine.account).join(" ");
  if (byId("engines").dataset.names !== names) {
    byId("engines").dataset.names = names;
    engines.clear();
    fill(byId("engines"), list.map((engine) => {
      const view = new EngineView(engine.account);
      engines.set(engine.account, view);
      return view.element;
    }));
  }
  for (const engine of list) engines.get(engine.account).show(engine, Date.parse(live.at));
  fill(byId("backends"), backends(live));
}

const heads = (names) => h("thead", null, h("tr", null, names.map(([name, kind]) => h("th", { scope: "col", class: kind }, name))));

/** How many entities were examined; a server of the protocol does not say. */
const examined = (r) => count(r.examined > 0 || r.returned === 0 ? r.examined : NaN);

let drawn = ""; // what the tables show: equal figures are not drawn again

function showRequests(list) {
  const key = `${list[0]?.id} ${list[0]?.at} ${list.length} ${time("2000-01-01T00:00:00Z")}`;
  if (drawn === key) return;
  drawn = key;
  fill(byId("last"), list.length === 0 ? h("div", { class: "empty" }, h("p", null, "No request yet. What clients of the Table protocol send appears here.")) :
    h("table", { class: "list" },
      heads([["Time"], ["Operation"], ["Table"], ["Status"], ["Duration", "number"], ["Examined", "number"], ["Returned", "number"], ["Request"]]),
      h("tbody", null, list.map((r) => h("tr", null,
        h("td", { title: times(r.at) }, time(r.at).replace(/^\S+ /, "").replace(/(\.\d{3})\d*/, "$1")),
        h("td", null, r.operation),
        h("td", null, r.table ? bdi(r.table) : "–", r.account && h("span", { class: "quiet" }, " ", bdi(r.account))),
        h("td", { class: `status-${Math.floor(r.status / 100)}` }, r.status, r.code && ` ${r.code}`),
        h("td", { class: "number" }, duration(r.ms)), h("td", { class: "number" }, examined(r)), h("td", { class: "number" }, count(r.returned)),
        h("td", { class: "quiet mono" }, r.id.slice(0, 8)))))));
}

let drawnShapes = "";

function showShapes(list) {
  const key = list.map((s) => `${s.shape} ${s.count}`).join("|") || "none";
  if (drawnShapes === key) return;
  drawnShapes = key;
  fill(byId("slow"), list.length === 0 ? h("div", { class: "empty" }, h("p", null, "No slow query yet. Queries appear here with what they read.")) :
    h("table", { class: "list" },
      heads([["Table"], ["Shape"], ["Times", "number"], ["In all", "number"], ["Slowest", "number"], ["Examined", "number"], ["Returned", "number"], ["Reads"]]),
      h("tbody", null, list.map((s) => h("tr", null,
        h("td", null, bdi(s.table)),
        h("td", { class: "wrap" }, h("a", { href: api.page("table", { account: s.account, table: s.table, filter: s.example }), title: `Explain: ${s.example}` }, h("code", { dir: "auto" }, s.shape || "all entities"))),
        h("td", { class: "number" }, count(s.count)), h("td", { class: "number" }, duration(s.totalMs)), h("td", { class: "number" }, duration(s.maxMs)),
        h("td", { class: "number" }, examined(s)), h("td", { class: "number" }, count(s.returned)),
        h("td", { class: "wrap" }, s.scan, s.warning && h("div", { class: "hint" }, `${s.warning} ${s.cure}`)))))));
}

function pause() {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  byId("pause").textContent = paused ? "Continue" : "Pause";
  if (paused) byId("state").textContent += ", paused";
  connect();
}

byId("pause").addEventListener("click", pause);
onKey("p", pause);
onZone(() => { if (newest) showRequests(newest.last ?? []); });
document.addEventListener("visibilitychange", connect);
addEventListener("pagehide", () => source?.close());
connect();
