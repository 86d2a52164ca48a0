// Meters of the last minutes: a figure, its rate and a line of its history.

import { h, svg, fill } from "./dom.js";
import { byteRate, bytes, count, duration, percent, plural, rate } from "./format.js";

const span = 300e3; // milliseconds of a line

const seconds = (a, b) => Math.max((Date.parse(b.at) - Date.parse(a.at)) / 1000, 0.001);
const sum = (name) => (s) => s.sums[name] ?? 0;
const request = (name) => (s) => s.requests[name] ?? 0;

/** The difference of a counter a second; after a restart a counter is smaller. */
const change = (read) => (a, b) => Math.max(0, read(b) - read(a)) / seconds(a, b);

const hits = sum("CacheHits");
const misses = sum("CacheMisses");

// Each meter: its name, its figure, its rate as text, and the value of the line.
const all = [
  { name: "Requests", size: (s) => count(s.requests.count), line: change(request("count")), rate },
  { name: "Reads", size: (s) => count(s.requests.reads), line: change(request("reads")), rate },
  { name: "Writes", size: (s) => count(s.requests.writes), line: change(request("writes")), rate },
  { name: "Failures", size: (s) => count(s.requests.failures), line: change(request("failures")), rate },
  { name: "Latency p50 (1 min)", size: (s) => duration(s.requests.latency.p50), line: (_, s) => s.requests.latency.p50, text: (s) => `p90 ${duration(s.requests.latency.p90)}` },
  { name: "Latency p99 (1 min)", size: (s) => duration(s.requests.latency.p99), line: (_, s) => s.requests.latency.p99, text: (s) => `max ${duration(s.requests.latency.max)}` },
  { name: "Log written", engine: true, size: (s) => bytes(sum("LogBytesWritten")(s)), line: change(sum("LogBytesWritten")), rate: byteRate },
  { name: "Log syncs (fsync)", engine: true, size: (s) => count(sum("LogSyncs")(s)), line: change(sum("LogSyncs")), rate },
  { name: "Flushes written", engine: true, size: (s) => bytes(sum("FlushBytesWritten")(s)), line: change(sum("FlushBytesWritten")), rate: byteRate },
  { name: "Compactions written", engine: true, size: (s) => bytes(sum("CompactionBytesWritten")(s)), line: change(sum("CompactionBytesWritten")), rate: byteRate },
  { name: "Cache hits", engine: true, size: (s) => percent(hits(s), hits(s) + misses(s)), line: change(hits), rate: (n) => `${rate(n)} hits` },
  { name: "Stalls", engine: true, size: (s) => count(sum("Stalls")(s)), line: change(sum("StallTime")), text: (s) => `${duration(sum("StallTime")(s) / 1e6)} in all` },
  { name: "Connections", size: (s) => count(s.requests.connections), line: (_, s) => s.requests.connections, text: (s) => `${plural(s.requests.inFlight, "request")} in flight` },
];

/** The sums of the figures of all engines. */
function sumsOf(live) {
  const sums = {};
  for (const engine of live.engines ?? []) {
    for (const [name, value] of Object.entries(engine.figures)) if (typeof value === "number") sums[name] = (sums[name] ?? 0) + value;
  }
  return sums;
}

export class Meters {
  #box; #samples = []; #parts; #engine;

  constructor(box) {
    this.#box = box;
    this.#build(true);
  }

  #build(engine) {
    this.#engine = engine;
    this.#parts = all.filter((m) => engine || !m.engine).map((m) => {
      const size = h("span", { class: "size" }, "–");
      const text = h("span", { class: "rate" }, "\u00a0");
      const line = svg("polyline", { class: "spark", points: "" });
      const element = h("li", { class: "meter", "data-part": m.name }, h("span", { class: "name" }, m.name), size, " ", h("div", null, text),
        svg("svg", { viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, line));
      return { m, size, text, line, element };
    });
    fill(this.#box, this.#parts.map((p) => p.element));
  }

  /** Adds a Live; the first one brings the history. */
  add(live) {
    if (live.history?.length) this.#samples = live.history.map((s) => ({ ...s, sums: s.sums ?? {} }));
    this.#samples.push({ at: live.at, requests: live.requests, sums: sumsOf(live) });
    const oldest = this.#samples.findIndex((s) => Date.parse(s.at) > Date.parse(live.at) - span);
    this.#samples.splice(0, Math.max(0, oldest));
    const engine = (live.engines?.length ?? 0) > 0;
    if (engine !== this.#engine) this.#build(engine);
    const last = this.#samples.at(-1);
    const before = this.#samples.at(-2) ?? last;
    for (const { m, size, text, line } of this.#parts) {
      size.textContent = m.size(last);
      text.textContent = m.text ? m.text(last) : m.rate(m.line(before, last));
      line.setAttribute("points", points(this.#samples, m.line));
    }
  }
}

// The line ends at the right edge; its height is relative to its own greatest value.
function points(samples, value) {
  const values = samples.slice(1).map((s, i) => value(samples[i], s));
  const top = Math.max(...values, 1e-9);
  const end = Date.parse(samples.at(-1).at);
  return values.map((v, i) => `${(100 - (100 * (end - Date.parse(samples[i + 1].at))) / span).toFixed(2)},${(22 - (20 * v) / top).toFixed(1)}`).join(" ");
}
