// Figures and times as text for people.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A number of bytes, such as 1.5 MiB. */
export function bytes(n) {
  if (!Number.isFinite(n)) return "–";
  let i = 0;
  for (; Math.abs(n) >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i === 0 || Math.abs(n) >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A count with separators, such as 1,000,000. */
export const count = (n) => (Number.isFinite(n) ? whole.format(n) : "–");

/** A rate, such as 1,200/s or 3.4/s. */
export const rate = (n) => `${!Number.isFinite(n) ? "–" : n < 10 ? n.toFixed(1).replace(/\.0$/, "") : count(n)}/s`;

/** A rate of bytes, such as 1.5 MiB/s. */
export const byteRate = (n) => `${bytes(n)}/s`;

/** A duration in milliseconds as text with a fitting unit. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60000)} min`;
}

export const percent = (part, all) => (all > 0 ? `${((100 * part) / all).toFixed(1)} %` : "–");

/** "1 table", "2 tables". */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

const setting = "tablerock-times";

/** Whether times are shown in the zone of the browser; else in UTC. */
export const localTimes = () => localStorage.getItem(setting) === "local";

export function setLocalTimes(local) { localStorage.setItem(setting, local ? "local" : "utc"); }

const pad = (n, width = 2) => String(n).padStart(width, "0");

// The protocol's times have seven digits of a second, more than Date has.
const fraction = (text) => /\.\d+/.exec(text)?.[0].replace(/0+$/, "").replace(/^\.$/, "") ?? "";

/** A time of the protocol in UTC. */
export const utc = (text) => text.replace("T", " ").replace(/\.0+Z$/, "Z").replace("Z", " UTC");

/** A time of the protocol in the zone of the browser. */
export function local(text) {
  const t = new Date(text);
  if (Number.isNaN(t.getTime())) return utc(text);
  const offset = -t.getTimezoneOffset();
  const zone = `${offset < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`;
  return `${pad(t.getFullYear(), 4)}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ` +
    `${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}${fraction(text)} ${zone}`;
}

/** A time as the reader set it. */
export const time = (text) => (!text ? "–" : localTimes() ? local(text) : utc(text));

/** Both forms of a time, for a tooltip. */
export const times = (text) => `${utc(text)}\n${local(text)} (this browser)`;
