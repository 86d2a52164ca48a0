// An engine to scale: bars whose widths are in proportion to the bytes of log segments,
// memtables and runs, with what a flush or a compaction moves.

import { h, fill, bdi, notice } from "./dom.js";
import { byteRate, bytes, count, duration, plural, time } from "./format.js";

const narrowest = 2; // pixels of a bar

export class EngineView {
  #levels = new Map(); #list; #scale; #jobs; #facts; #trouble; #before; #drawnJobs = "";

  constructor(account) {
    this.#list = h("ul", { class: "levels", "aria-label": `Files and memory of ${account}` });
    this.#scale = h("p", { class: "quiet scale" }, "\u00a0");
    this.#facts = h("p", { class: "quiet" }, "\u00a0");
    this.#trouble = h("div");
    this.#jobs = h("div", { class: "scroll jobs", tabindex: "0", role: "region", "aria-label": `Flushes and compactions of ${account}` });
    this.element = h("section", { class: "panel engine", "aria-label": `Engine of ${account}`, "data-account": account },
      h("h2", null, bdi(account)), this.#trouble, this.#facts, this.#list, this.#scale, h("h3", null, "Flushes and compactions"), this.#jobs);
  }

  /** Shows the state of the engine at a time in milliseconds. */
  show(engine, at) {
    const levels = levelsOf(engine);
    const seconds = this.#before ? Math.max((at - this.#before.at) / 1000, 0.001) : 0;
    const rateOf = (name, counter) => (seconds === 0 ? 0 : Math.max(0, (counter - (this.#before.counters.get(name) ?? counter)) / seconds));
    const change = (name, size) => (seconds === 0 ? 0 : (size - (this.#before.sizes.get(name) ?? size)) / seconds);
    const largest = Math.max(...levels.map((level) => level.bars.reduce((n, bar) => n + bar.bytes, 0)), 1);
    const order = levels.map((level) => level.name).join("|");
    if (this.#list.dataset.order !== order) this.#build(levels, order);
    const width = Math.max(this.#list.querySelector(".bars").clientWidth - 40, 100);
    const perPixel = largest / width;
    for (const level of levels) {
      const part = this.#levels.get(level.name);
      part.size.textContent = `${bytes(level.bytes)}${level.more ? `, ${level.more}` : ""}`;
      const growth = change(level.name, level.bytes);
      part.rate.textContent = (level.counter !== undefined ? `${byteRate(rateOf(level.name, level.counter))} written` : `${growth < 0 ? "−" : "+"}${byteRate(Math.abs(growth))}`) +
        (level.moving > 0 ? ` · ${bytes(level.moving)} ${level.verb}` : "");
      drawBars(part.bars, level.bars, perPixel);
    }
    const f = engine.figures;
    const trouble = engine.failure ? `The database accepts no writes until it is opened again: ${engine.failure}` : f.DiskFull ? "The disk is full: only deletions are accepted." : "";
    if (this.#trouble.textContent !== trouble) fill(this.#trouble, trouble && notice("error", trouble));
    this.#facts.textContent = `${plural(f.Tables ?? 0, "table")} · ${plural(f.Entities ?? 0, "entity", "entities")} · ${plural(f.SSTables ?? 0, "sstable")}, ${bytes(f.SSTableBytes ?? 0)} · ` +
      `read amplification ${f.RunsMax ?? 0} · space amplification ${(f.SpaceAmp ?? 1).toFixed(2)}`;
    this.#scale.textContent = `To scale: 100 px are ${bytes(perPixel * 100)}.`;
    this.#showJobs(engine.jobs ?? []);
    this.#before = {
      at, sizes: new Map(levels.map((level) => [level.name, level.bytes])),
      counters: new Map(levels.filter((level) => level.counter !== undefined).map((level) => [level.name, level.counter])),
    };
  }

  #build(levels, order) {
    this.#list.dataset.order = order;
    this.#levels.clear();
    fill(this.#list, levels.map((level) => {
      const part = { size: h("span", { class: "size" }), rate: h("span", { class: "rate" }), bars: h("div", { class: "bars", "aria-hidden": "true" }) };
      this.#levels.set(level.name, part);
      return h("li", { class: `level ${level.kind}`, "data-part": level.name }, h("span", { class: "name" }, level.name), part.bars, h("div", { class: "figures" }, part.size, part.rate));
    }));
  }

  #showJobs(jobs) {
    const key = jobs.map((job) => `${job.at}${job.state}${job.written}`).join() + time("2000-01-01T00:00:00Z");
    if (key === this.#drawnJobs) return;
    this.#drawnJobs = key;
    fill(this.#jobs, jobs.length === 0 ? h("p", { class: "quiet" }, "None since the start.") : h("table", { class: "list" },
      h("thead", null, h("tr", null, ["Time", "Work", "What", "Read", "Written", "Files", "Duration"].map((name, i) => h("th", { scope: "col", class: i > 2 ? "number" : null }, name)))),
      h("tbody", null, jobs.slice(0, 12).map((job) => h("tr", { "data-state": job.state },
        h("td", null, time(job.at).replace(/\.\d+/, "")), h("td", null, job.kind, job.state === "running" && h("strong", null, " under way")), h("td", { class: "wrap" }, job.what.replace(/^compaction \((.*)\)$/, "$1")),
        h("td", { class: "number" }, job.state === "running" || job.kind === "flush" ? "–" : bytes(job.read)), h("td", { class: "number" }, bytes(job.written)),
        h("td", { class: "number" }, `${count(job.inputs)} → ${count(job.outputs)}`), h("td", { class: "number" }, duration(job.ms)))))));
  }
}

/** The levels of an engine from the newest data to the oldest, then the jobs under way. */
function levelsOf(engine) {
  const f = engine.figures;
  const total = (list, of = "bytes") => list.reduce((n, one) => n + one[of], 0);
  const segments = engine.segments ?? [];
  const memtables = engine.memtables ?? [];
  const flushing = (list) => list.filter((one) => one.state === "flushing");
  const waits = { frozen: "waits for its flush", flushing: "is flushed", active: "active" };
  const part = (one) => (one.state === "flushing" ? 1 : 0);
  const levels = [
    {
      name: "Log (WAL)", kind: "log", bytes: total(segments), more: plural(segments.length, "segment"), counter: f.LogBytesWritten,
      moving: total(flushing(segments)), verb: "to drop",
      bars: segments.map((s) => ({ bytes: s.bytes, part: part(s), title: `segment ${s.number}, ${waits[s.state]}, ${bytes(s.bytes)}` })),
    },
    {
      name: "Memtables", kind: "memory", bytes: total(memtables), more: plural(total(memtables, "rows"), "row"), moving: total(flushing(memtables)), verb: "flushing",
      bars: memtables.map((m) => ({ bytes: m.bytes, part: part(m), title: `memtable of segment ${m.segment}, ${waits[m.state]}, ${bytes(m.bytes)}` })),
    },
  ];
  for (const tier of engine.tiers ?? []) {
    const runs = tier.runs ?? [];
    const bottom = tier.name === "bottom";
    levels.push({
      name: bottom ? "Bottom" : tier.name.replace(/^t/, "T"), kind: bottom ? "bottom" : "tier", bytes: total(runs), more: plural(runs.length, "run"),
      moving: total(runs, "moving"), verb: "compacting",
      bars: runs.map((r) => ({ bytes: r.bytes, part: r.moving / r.bytes, title: `run ${r.number}, ${plural(r.sstables, "sstable")}, ${bytes(r.bytes)}, ${plural(r.entries, "row")}` })),
    });
  }
  const moved = { flush: levels[1].moving, compaction: levels.slice(2).reduce((n, level) => n + level.moving, 0) };
  const output = (kind, name, color, counter) => {
    const running = (engine.jobs ?? []).filter((job) => job.state === "running" && job.kind === kind);
    return {
      name, kind: color, bytes: total(running, "written"), more: running.length > 0 ? `of ${bytes(moved[kind])} read` : "none under way", counter,
      bars: running.map((job) => ({ bytes: Math.max(job.written, moved[kind]), part: job.written / Math.max(job.written, moved[kind], 1), job: true, title: `${kind} ${job.what}, ${bytes(job.written)} written` })),
    };
  };
  return [...levels, output("flush", "Flush", "memory", f.FlushBytesWritten), output("compaction", "Compaction", "tier", f.CompactionBytesWritten)];
}

function drawBars(box, bars, perPixel) {
  while (box.childElementCount > bars.length) box.lastChild.remove();
  while (box.childElementCount < bars.length) box.append(h("span", null, h("span")));
  bars.forEach((bar, i) => {
    const one = box.children[i];
    one.className = `bar${bar.job ? " job" : ""}${bar.part > 0 ? " moving" : ""}`;
    one.style.width = `${Math.max(narrowest, bar.bytes / perPixel).toFixed(1)}px`;
    one.firstChild.style.width = `${(100 * bar.part).toFixed(1)}%`;
    one.title = bar.title;
  });
}
