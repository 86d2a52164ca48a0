// Exports the result of a query as a file of any format.

import { h, fill, field, select, notice, dialog } from "./dom.js";
import { showJob, follow } from "./jobs.js";
import * as api from "./api.js";

export const formats = [["csv", "CSV, typed columns"], ["tsv", "CSV with tabs"], ["jsonl", "JSON, an entity a line"], ["json", "JSON array"], ["parquet", "Parquet"]];
export const compressions = [["", "not compressed"], ["gz", "gzip"], ["zst", "Zstandard"]];

/** The controls of an export of {filter, select} as a form. close is undefined on a page. started is called when a job has begun. */
export function exportForm(table, query, close, started) {
  const format = select({ name: "format" }, formats, "csv");
  const compression = select({ name: "compression" }, compressions, "");
  const name = h("input", { name: "name", spellcheck: "false", autocomplete: "off" });
  const go = h("button", { class: "main", autofocus: Boolean(close) }, "Export");
  const box = h("div", { "aria-live": "polite" });
  const stopped = new AbortController();
  const rename = () => {
    compression.disabled = format.value === "parquet"; // it compresses its pages
    if (compression.disabled) compression.value = "";
    name.value = `${table.name}.${format.value}${compression.value && `.${compression.value}`}`;
  };
  format.addEventListener("change", rename);
  compression.addEventListener("change", rename);
  rename();
  const submit = async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      const { job, url } = await api.post("export", {
        account: table.account, table: table.name, filter: query.filter, select: query.select, name: name.value, format: format.value, compression: compression.value,
      });
      started?.();
      const { state } = await follow(job, (now) => showJob(box, now), stopped.signal);
      if (state === "done") h("a", { href: url, download: name.value }).click();
    } catch (error) {
      if (error.name !== "AbortError") fill(box, notice("error", error.message));
    } finally {
      go.disabled = false;
    }
  };
  return h("form", { class: "stack export", onsubmit: submit },
    h("p", { class: "quiet" }, query.filter ? ["The entities that match ", h("code", { dir: "auto" }, query.filter)] : "All entities of the table", query.select ? `, with the properties ${query.select}.` : "."),
    h("div", { class: "row" }, field("Format", format), field("Compression", compression), h("div", { class: "grow" }, field("File", name))),
    box,
    h("div", { class: "actions" }, close && h("button", { type: "button", onclick: () => { stopped.abort(); close(); } }, "Close"), go));
}

export function exportDialog(table, query) {
  return dialog({
    title: "Export the result",
    make(close, heading) {
      const form = exportForm(table, query, close);
      form.prepend(heading);
      return form;
    },
  });
}
