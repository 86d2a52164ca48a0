// What the page of the engine shows of data whose engine runs elsewhere: the connections
// to its database, if there is one.

import { h } from "./dom.js";
import { bytes, count, duration, plural, rate } from "./format.js";

let before; // {at, pools} of the last call

/** The sections of a Live without engines, or with databases beside its engines. */
export function backends(live) {
  const pools = live.pool ?? [];
  const at = Date.parse(live.at);
  const seconds = before ? (at - before.at) / 1000 : 0;
  const sections = pools.map((p, i) => {
    const trips = seconds > 0 ? Math.max(0, p.RoundTrips - (before.pools[i]?.RoundTrips ?? p.RoundTrips)) / seconds : 0;
    return section(pools.length > 1 ? `PostgreSQL ${i + 1}` : "PostgreSQL", facts(p, trips));
  });
  if (sections.length === 0 && (live.engines ?? []).length === 0) sections.push(section("Backend"));
  before = { at, pools };
  return sections;
}

const section = (name, list) => h("section", { class: "panel", "aria-label": name }, h("h2", null, name),
  h("p", { class: "quiet" }, "The engine of this data runs elsewhere, so its files are not shown here. Requests are."),
  list && h("dl", { class: "facts" }, list.map(([part, size, speed]) => h("div", { "data-part": part }, h("dt", { class: "name" }, part),
    h("dd", null, h("span", { class: "size" }, size), " ", h("span", { class: "rate quiet" }, speed ?? ""))))));

function facts(p, trips) {
  const s = p.Sample;
  return [
    ["Connections", `${count(p.Conns)} of at most ${count(p.MaxConns)}`, `${count(p.IdleConns)} idle`],
    ["Round trips", count(p.RoundTrips), rate(trips)],
    ["Retries", count(p.Retries)],
    ["Unknown outcomes", count(p.UnknownOutcomes)],
    ["Failovers", count(p.Failovers)],
    ["Last commit", `${duration(p.Heartbeat / 1e6)} ago`],
    ...(s.LiveRows + s.TableBytes > 0 ? [
      ["Rows", `≈ ${count(s.LiveRows)}`, `${count(s.DeadRows)} dead`],
      ["Entities", bytes(s.TableBytes), `${bytes(s.IndexBytes)} of indexes`],
      ["Dropped tables", plural(s.DroppedTables, "table"), "not removed yet"],
    ] : []),
  ];
}
