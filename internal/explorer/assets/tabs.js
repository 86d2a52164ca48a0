// The tabs of a table.

import { byId, h, fill } from "./dom.js";
import * as api from "./api.js";

const names = [["table", "Entities"], ["transfer", "Import and export"], ["access", "Access"]];

/** Shows the tabs of a table; current is the name of the page. They keep the query {filter, select}. */
export function tabs(current, table, { filter, select }) {
  const at = { account: table.account, table: table.name, filter, select };
  fill(byId("tabs"), names.map(([name, text]) => h("a", { href: api.page(name, at), "aria-current": name === current ? "page" : null }, text)));
}
