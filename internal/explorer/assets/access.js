// The page of access: stored policies of a table, and shared access signatures.

import { byId, h, fill, field, notice, failure, copy, toast } from "./dom.js";
import { tabs } from "./tabs.js";
import { parameters, ready, table } from "./page.js";
import * as api from "./api.js";

const mostPolicies = 5;
const permissions = [["r", "read"], ["a", "add"], ["u", "update"], ["d", "delete"]];
const hour = 3600e3;

const inUTC = (ms) => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/** Checkboxes for letters, kept in their order in value. */
function letters(name, meanings, value, changed) {
  const boxes = Object.entries(meanings).map(([letter, meaning]) => [letter, h("input", { type: "checkbox", checked: value.includes(letter), onchange: changed }), meaning]);
  const element = h("fieldset", null, h("legend", null, name), h("div", { class: "checks" },
    boxes.map(([letter, box, meaning]) => h("label", null, box, " ", h("code", null, letter), ` ${meaning}`))));
  return { element, get value() { return boxes.filter(([, box]) => box.checked).map(([letter]) => letter).join(""); } };
}

const policyForm = "A policy needs a name that no other one has, of at most 64 characters, and times such as 2026-01-31T08:00:00Z.";

class Policies {
  #rows = []; #list = h("div", { class: "stack" }); #problem = h("div", { "aria-live": "polite" }); #plus; #none;

  constructor(box, policies) {
    this.#plus = h("button", { type: "button", onclick: () => this.#add({ id: "", start: "", expiry: inUTC(Date.now() + 24 * hour), permission: "r" }).id.focus() }, "Add a policy");
    this.#none = h("p", { class: "quiet" }, "No policies. Only keys and signatures with their own permissions have access.");
    fill(box, this.#none, this.#list, this.#problem, h("div", { class: "row" }, this.#plus, h("button", { class: "main", type: "button", onclick: () => this.#save() }, "Save policies")));
    for (const p of policies) this.#add(p);
    this.#show();
  }

  #show() {
    this.#plus.disabled = this.#rows.length >= mostPolicies;
    this.#none.hidden = this.#rows.length > 0;
  }

  #add(policy) {
    const input = (value, placeholder) => h("input", { value, placeholder, spellcheck: "false", autocomplete: "off", size: 22 });
    const row = { id: input(policy.id, "name"), start: input(policy.start, "at once"), expiry: input(policy.expiry, "no end"), permission: letters("May", Object.fromEntries(permissions), policy.permission) };
    row.element = h("div", { class: "row low policy", role: "group", "aria-label": "Policy" }, field("Name", row.id), field("Start", row.start), field("Expiry", row.expiry), row.permission.element,
      h("button", { type: "button", onclick: () => {
        this.#rows.splice(this.#rows.indexOf(row), 1);
        row.element.remove();
        this.#show();
        this.#plus.focus();
      } }, "Remove"));
    this.#rows.push(row);
    this.#list.append(row.element);
    this.#show();
    return row;
  }

  async #save() {
    const policies = this.#rows.map((row) => ({ id: row.id.value, start: row.start.value.trim(), expiry: row.expiry.value.trim(), permission: row.permission.value }));
    try {
      await api.post("acl", { account: table.account, table: table.name, policies });
      fill(this.#problem);
      toast("Saved the policies");
    } catch (error) {
      fill(this.#problem, failure(error, error.code === "InvalidXmlDocument" && policyForm)); // the protocol has policies as XML
    }
  }
}

/** The first value of a field: what most signatures need. */
function first(f) {
  switch (f.name) {
    case "se": return inUTC(Date.now() + 24 * hour);
    case "sp": return "r";
    case "srt": return "sco";
    default: return "";
  }
}

function signatureForm(fields) {
  const controls = fields.map((f) => {
    const name = `${f.label}${f.needed ? "" : " (optional)"}`;
    if (f.letters) {
      const c = letters(name, f.letters, first(f));
      c.element.append(h("small", { class: "hint" }, h("code", null, f.name), ` ${f.meaning}`));
      return { f, element: c.element, get value() { return c.value; } };
    }
    const input = h("input", { value: first(f), placeholder: f.example, spellcheck: "false", autocomplete: "off", name: f.name });
    return { f, element: field(name, input, [h("code", null, f.name), ` ${f.meaning}`]), get value() { return input.value; } };
  });
  fill(byId("sas"), h("div", { class: "fields" }, controls.map((c) => c.element)), h("div", null, h("button", { class: "main" }, "Make the signature")));
  byId("sas").addEventListener("submit", async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(controls.map((c) => [c.f.name, c.value]).filter(([, value]) => value !== ""));
    try {
      showSignature(await api.post("sas", { account: table.account, kind: table.name ? "table" : "account", table: table.name, fields: values }));
    } catch (error) {
      fill(byId("signature"), notice("error", error.message));
    }
  });
}

function showSignature(sas) {
  const line = (name, text) => text && h("div", { class: "row low" }, h("div", { class: "grow" }, field(name, h("input", { class: "mono", readonly: true, value: text }))),
    h("button", { type: "button", "aria-label": `Copy: ${name}`, onclick: () => copy(text, name) }, "Copy"));
  fill(byId("signature"), h("div", { class: "stack" },
    h("h3", null, "This signature"),
    sas.warnings.map((text) => notice("warn", text)),
    h("ul", null, sas.summary.map((text) => h("li", null, text))),
    line("URL", sas.url), line("Query string", sas.query), line("Connection string", sas.connection)));
  byId("signature").scrollIntoView({ block: "nearest" });
}

async function start() {
  byId("crumb-account").textContent = table.name ? table.account : "Tables";
  byId("name").textContent = table.name || table.account;
  document.title = `Access to ${table.name || table.account} · Tablerock`;
  byId("sas-text").textContent = table.name
    ? "Lets somebody without a key do what you choose here with this table, until it expires. It cannot be listed later, and it ends early only with its policy or the key."
    : "Lets somebody without a key do what you choose here with the tables of this account, until it expires. It ends early only with the key.";
  if (table.name) tabs("access", table, Object.fromEntries(parameters));
  else byId("tabs").hidden = true;
  const { accounts } = await api.get("accounts");
  const account = accounts.find((one) => one.name === table.account);
  if (!account) throw new Error("There is no account of this name.");
  if (table.name) {
    byId("policies-panel").hidden = false;
    if (account.acl) {
      const { policies } = await api.get("acl", { a: table.account, t: table.name });
      new Policies(byId("policies"), policies ?? []);
    } else {
      fill(byId("policies"), h("p", { class: "quiet" }, "This backend has no access policies."));
    }
  }
  if (!account.sas) {
    fill(byId("sas"), h("p", { class: "quiet" }, "A signature needs a key of the account, which the explorer does not have here."));
    return;
  }
  const fields = await api.get("sas/fields");
  signatureForm(table.name ? fields.table : fields.account);
}

start().catch((error) => fill(byId("signature"), failure(error))).finally(ready);
