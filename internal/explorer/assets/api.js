// The JSON API of the server; doc.go of the package has its routes and shapes.

const root = "/ui/api/";

/** A failure that the server reports; its fields are those of Failure, and the status. */
export class Failure extends Error {
  constructor(status, body) {
    super(body?.message || (status === 503 ? "The server is not ready. Try again later." : `The server answered with status ${status}.`));
    Object.assign(this, body, { status, message: this.message });
  }

  /** Whether the entity has another ETag than the request gave, or is gone; theirs is the stored one. */
  get conflict() { return this.status === 412 || (this.status === 404 && this.code === "ResourceNotFound"); }
}

let ended = false; // the session of the page's token, or another one has taken its place

const unsaved = [() => document.querySelector("dialog[open] form")];

/** Keeps the page after the end of its session while test returns true: to leave it would lose something. */
export const keepWhile = (test) => { unsaved.push(test); };

/** The headers of a change. After the end of its session, a page takes the token of the next one. */
async function headers(type) {
  const meta = document.querySelector('meta[name="csrf"]');
  if (ended) {
    meta.content = (await get("session")).csrf;
    ended = false;
  }
  return { "Content-Type": type, "X-Csrf-Token": meta?.content ?? "" };
}

/** The path of a request with parameters; those that are undefined or "" are left out. */
export function url(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  // A key can be empty, and is then needed to tell it from no key.
  for (const name of ["pk", "rk"]) if (parameters[name] === "") query.set(name, "");
  return query.size > 0 ? `${path}?${query}` : path;
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, { code: "NoConnection", message: "The server does not answer. Is it still running?" });
  }
  if (response.status === 401 && !location.pathname.endsWith("/login")) {
    ended = true;
    if (unsaved.some((test) => test())) {
      throw new Failure(401, { code: "SessionEnded",
        message: "This session has ended. Log in with another tab of this browser, then try again: this page stays as it is." });
    }
    location.assign(url("/ui/login", { next: location.pathname + location.search }));
    await new Promise(() => {}); // the page is left
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Failure(response.status, body);
  return body;
}

export const get = (path, parameters, signal) => send(url(root + path, parameters), { signal });

/** Sends a change. After a login in another tab it takes the token of that session. */
async function change(path, type, body, signal) {
  const attempt = async () => send(path, { method: "POST", signal, body, headers: await headers(type) });
  try {
    return await attempt();
  } catch (error) {
    if (error.code !== "NoCsrfToken") throw error;
    ended = true;
    return attempt();
  }
}

export const post = (path, body, signal) => change(root + path, "application/json", JSON.stringify(body), signal);

/** Sends a chunk of a file. */
export const postData = (path, parameters, blob, signal) => change(url(root + path, parameters), "application/octet-stream", blob, signal);

/** Opens the stream of the engine's state. The browser connects again by itself. */
export const events = () => new EventSource(`${root}events`);

/** The address of a page of this program with parameters. */
export const page = (name, parameters) => url(`/ui/${name}`, parameters);

/** Applies one operation to an entity of a table {account, name}. */
export const write = (table, op, entity, etag) => post("entity", { account: table.account, table: table.name, op, entity, etag });
