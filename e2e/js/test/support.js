// Shared by the tests: clients of the endpoint in the environment, and tables that are
// deleted at the end of a test.
import assert from "node:assert/strict";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";

/** The parts of a connection string. */
export function parse(connectionString) {
  const parts = Object.fromEntries(
    connectionString.split(";").filter(Boolean).map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]),
  );
  return { url: parts.TableEndpoint.replace(/\/$/, ""), account: parts.AccountName, key: parts.AccountKey };
}

/** The value of a variable of the environment that the tests cannot do without. */
export function needed(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: the Go test TestJavaScript sets it`);
  return value;
}

export const connectionString = needed("TABLEROCK_CONNECTION_STRING");
export const endpoint = parse(connectionString);
export const credential = new AzureNamedKeyCredential(endpoint.account, endpoint.key);

/** Options of all clients: a failure comes back at once. */
export const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

export const service = new TableServiceClient(endpoint.url, credential, options);

let tables = 0;

/** A name that no other test uses. */
export function tableName() {
  tables += 1;
  return `J${process.pid}x${Date.now()}x${tables}`;
}

/** Makes a table that goes with the test, and returns its client. */
export async function newTable(t, at = endpoint, by = credential) {
  const client = new TableClient(at.url, tableName(), by, options);
  await client.createTable();
  t.after(() => client.deleteTable());
  return client;
}

/** What the service said of a failure: its status and its code. */
export function refusal(error) {
  return [error.statusCode, error.details?.odataError?.code ?? error.details?.errorCode ?? error.code];
}

/** Wants a promise to fail as the service says it. */
export async function refused(promise, status, code) {
  const outcome = await promise.then(() => "success", (error) => (error.statusCode ? refusal(error) : error));
  assert.deepEqual(outcome, [status, code]);
}

/** All row keys of a query, in the order they came. */
export async function rows(client, filter) {
  const all = [];
  for await (const entity of client.listEntities({ queryOptions: { filter } })) {
    all.push(entity.rowKey);
  }
  return all;
}

/** The properties of an entity that are neither keys nor metadata. */
export function custom(entity) {
  const rest = { ...entity };
  for (const name of ["partitionKey", "rowKey", "timestamp", "etag", "odata.metadata"]) {
    delete rest[name];
  }
  return rest;
}

/** A filter's way to write a string. */
export function quoted(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Legal keys, each hard for someone on its way. */
export const oddKeys = [
  " ", " leading", "trailing ", "in side", "'", "''", "it's", "'quoted'", "',RowKey='", "x',RowKey='y') or (",
  '"', '"double"', "%", "%20", "%2F", "%27", "100%", "+", "a+b", "&", "a&b=c", "=", ";", ",", "(", ")", "a(b)c",
  "@", "*", "$", "!", "~", "`", "^", "|", "<", ">", "[x]", "{y}", ":", "-", "_", ".", "..",
  "$batch", "Tables", "null", "true", "0", "é", "e\u0301", "grüße", "表", "שלום", "😀", "𐍈", "\ue000",
  "\u00a0", "\u3000", "A", "a", "k".repeat(1024), "表".repeat(256),
];
