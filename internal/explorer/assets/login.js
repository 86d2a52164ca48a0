// The login: a one-time link, an account and its key, or a shared access signature.

import { byId, fill, notice } from "./dom.js";
import * as api from "./api.js";

// Only a path of this program is followed: another address could be of someone else.
function next() {
  const path = new URLSearchParams(location.search).get("next") ?? "";
  return /^\/ui\/(?!\/)/.test(path) && new URL(path, location.origin).origin === location.origin ? path : "/ui/";
}

async function login(body) {
  byId("submit").disabled = true;
  fill(byId("problem"));
  try {
    await api.post("login", body);
    location.replace(next());
  } catch (error) {
    fill(byId("problem"), notice("error", error.message));
    byId("submit").disabled = false;
  }
}

const kind = () => document.querySelector('[name="kind"]:checked').value;

for (const choice of document.querySelectorAll('[name="kind"]')) {
  choice.addEventListener("change", () => {
    const sas = kind() === "sas";
    byId("secret-name").textContent = sas ? "Shared access signature" : "Account key";
    byId("secret-hint").textContent = sas
      ? "The query string with sv, sp, se and sig. You may do what it allows, no more."
      : "Base64, one of the keys of the account. It is sent to this server only, which keeps it in memory.";
  });
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  login({ account: byId("account").value.trim(), [kind()]: byId("secret").value.trim() });
});

const once = /^#once=(.+)$/.exec(location.hash)?.[1];
if (once) {
  history.replaceState(null, "", location.pathname + location.search);
  login({ once });
} else {
  byId("account").focus();
  // A browser sends no cookie of a session with a link on a page of another site, but this
  // request has it.
  if (new URLSearchParams(location.search).get("next") === next()) api.get("session").then(() => location.replace(next()), () => {});
}
