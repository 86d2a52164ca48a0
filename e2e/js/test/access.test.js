import assert from "node:assert/strict";
import { test } from "node:test";
import { AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, generateAccountSas, generateTableSas } from "@azure/data-tables";
import { credential, endpoint, newTable, options, refused, rows, service } from "./support.js";

const hour = 3600 * 1000;
const soon = () => new Date(Date.now() + hour);

/** A client whose only right is a signature. */
function guest(client, values) {
  const sas = generateTableSas(client.tableName, credential, { expiresOn: soon(), ...values });
  return new TableClient(endpoint.url, client.tableName, new AzureSASCredential(sas), options);
}

test("permissions of a table's signature", async (t) => {
  const owner = await newTable(t);
  const entity = (rowKey) => ({ partitionKey: "p", rowKey });
  const operations = {
    query: ["query", (c) => rows(c)],
    get: ["query", (c) => c.getEntity("p", "there")],
    insert: ["add", (c) => c.createEntity(entity(`new ${Math.random()}`))],
    update: ["update", (c) => c.updateEntity(entity("there"), "Merge")],
    delete: ["delete", (c) => c.deleteEntity("p", "there")],
  };
  for (const letter of ["query", "add", "update", "delete"]) {
    for (const [name, [needs, call]] of Object.entries(operations)) {
      await t.test(`${letter}: ${name}`, async () => {
        await owner.upsertEntity(entity("there"));
        const promise = call(guest(owner, { permissions: { [letter]: true } }));
        await (needs === letter ? promise : refused(promise, 403, "AuthorizationPermissionMismatch"));
      });
    }
  }
  await t.test("upsert", async () => {
    const both = guest(owner, { permissions: { add: true, update: true } });
    await both.upsertEntity(entity("upserted"), "Replace");
    await refused(guest(owner, { permissions: { add: true } }).upsertEntity(entity("upserted")), 403, "AuthorizationPermissionMismatch");
  });
});

test("ranges of a table's signature", async (t) => {
  const owner = await newTable(t);
  for (const partitionKey of ["a", "b", "c", "d"]) {
    await owner.submitTransaction(["1", "2", "3"].map((r) => ["create", { partitionKey, rowKey: partitionKey + r }]));
  }
  const client = guest(owner, {
    permissions: { query: true, add: true, update: true, delete: true },
    startPartitionKey: "b", startRowKey: "b2", endPartitionKey: "c", endRowKey: "c2",
  });
  assert.deepEqual(await rows(client), ["b2", "b3", "c1", "c2"]);
  assert.deepEqual(await rows(client, "PartitionKey eq 'a'"), []);
  const paged = [];
  for await (const page of client.listEntities().byPage({ maxPageSize: 1 })) {
    paged.push(...page.map((entity) => entity.rowKey));
  }
  assert.deepEqual(paged, ["b2", "b3", "c1", "c2"]);
  await client.upsertEntity({ partitionKey: "b", rowKey: "b9" });
  await refused(client.upsertEntity({ partitionKey: "b", rowKey: "b1" }), 403, "AuthorizationFailure");
  await refused(client.getEntity("a", "a1"), 403, "AuthorizationFailure");
  await refused(client.createEntity({ partitionKey: "d", rowKey: "d9" }), 403, "AuthorizationFailure");
  await client.submitTransaction([["upsert", { partitionKey: "b", rowKey: "b7" }], ["upsert", { partitionKey: "b", rowKey: "b8" }]]);
  await assert.rejects(client.submitTransaction([["upsert", { partitionKey: "b", rowKey: "b6" }], ["upsert", { partitionKey: "b", rowKey: "b1" }]]));
  await refused(owner.getEntity("b", "b6"), 404, "ResourceNotFound");
});

test("signatures that are refused", async (t) => {
  const owner = await newTable(t);
  await owner.createEntity({ partitionKey: "p", rowKey: "r" });
  const read = (values) => guest(owner, { permissions: { query: true }, ...values }).getEntity("p", "r");
  await read({});
  await read({ startsOn: new Date(Date.now() - hour), protocol: "https,http", ipRange: { start: "127.0.0.1" } });
  await refused(read({ expiresOn: new Date(Date.now() - hour) }), 403, "AuthenticationFailed");
  await refused(read({ startsOn: new Date(Date.now() + hour / 2) }), 403, "AuthenticationFailed");
  await refused(read({ protocol: "https" }), 403, "AuthorizationProtocolMismatch");
  await refused(read({ ipRange: { start: "192.0.2.1" } }), 403, "AuthorizationSourceIPMismatch");
  const stranger = new AzureNamedKeyCredential(endpoint.account, "c3RyYW5nZXI=");
  const forged = new AzureSASCredential(generateTableSas(owner.tableName, stranger, { expiresOn: soon(), permissions: { query: true } }));
  await refused(new TableClient(endpoint.url, owner.tableName, forged, options).getEntity("p", "r"), 403, "AuthenticationFailed");
  await refused(new TableClient(endpoint.url, owner.tableName, stranger, options).getEntity("p", "r"), 403, "AuthenticationFailed");
});

test("stored policies", async (t) => {
  const owner = await newTable(t);
  await owner.createEntity({ partitionKey: "p", rowKey: "r" });
  const start = new Date("2026-01-02T03:04:05.000Z");
  const expiry = new Date("2126-01-02T03:04:05.000Z");
  await owner.setAccessPolicy([{ id: "policy", accessPolicy: { start, expiry, permission: "r" } }, { id: "bare" }]);
  const got = await owner.getAccessPolicy();
  assert.deepEqual(got.map(({ id, accessPolicy }) => [id, accessPolicy?.permission, accessPolicy?.start?.getTime(), accessPolicy?.expiry?.getTime()]), [
    ["policy", "r", start.getTime(), expiry.getTime()],
    ["bare", undefined, undefined, undefined],
  ]);
  const sas = generateTableSas(owner.tableName, credential, { identifier: "policy" });
  const client = new TableClient(endpoint.url, owner.tableName, new AzureSASCredential(sas), options);
  await client.getEntity("p", "r");
  await refused(client.createEntity({ partitionKey: "p", rowKey: "s" }), 403, "AuthorizationPermissionMismatch");
  const six = Array.from({ length: 6 }, (_, i) => ({ id: `id${i}`, accessPolicy: { permission: "r" } }));
  await refused(owner.setAccessPolicy(six), 400, "InvalidXmlDocument");
  await owner.setAccessPolicy([]);
  assert.equal((await owner.getAccessPolicy()).length, 0);
  await refused(client.getEntity("p", "r"), 403, "AuthenticationFailed");
});

test("signatures of the account", async (t) => {
  const owner = await newTable(t);
  await owner.createEntity({ partitionKey: "p", rowKey: "r" });
  const by = (resourceTypes, permissions) => new AzureSASCredential(generateAccountSas(credential, { resourceTypes, permissions, services: { table: true }, expiresOn: soon() }));
  const account = (types, permissions) => new TableServiceClient(endpoint.url, by(types, permissions), options);
  const table = (types, permissions) => new TableClient(endpoint.url, owner.tableName, by(types, permissions), options);
  await account("c", { list: true }).listTables().next();
  await refused(account("c", { query: true }).listTables().next(), 403, "AuthorizationPermissionMismatch");
  await refused(account("o", { list: true }).listTables().next(), 403, "AuthorizationResourceTypeMismatch");
  await table("o", { query: true }).getEntity("p", "r");
  await refused(table("o", { query: true }).deleteEntity("p", "r"), 403, "AuthorizationPermissionMismatch");
  await refused(table("c", { query: true }).getEntity("p", "r"), 403, "AuthorizationResourceTypeMismatch");
  await account("s", { query: true }).getProperties();
});

test("properties and statistics", async (t) => {
  const before = await service.getProperties();
  t.after(() => service.setProperties({ logging: before.logging, hourMetrics: before.hourMetrics, minuteMetrics: before.minuteMetrics, cors: [] }));
  const week = { enabled: true, days: 7 };
  const want = {
    logging: { version: "1.0", read: true, write: true, delete: false, retentionPolicy: week },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: week },
    cors: [{ allowedOrigins: "https://example.org", allowedMethods: "GET,PUT", allowedHeaders: "x-ms-meta*", exposedHeaders: "x-ms-*", maxAgeInSeconds: 60 }],
  };
  await service.setProperties(want);
  const got = await service.getProperties();
  assert.deepEqual({ logging: got.logging, hourMetrics: got.hourMetrics, cors: got.cors }, want);
  // The SDK derives the secondary from the first label of a host name; an IP address has none.
  const { geoReplication } = await new TableServiceClient(`${endpoint.url}-secondary`, credential, options).getStatistics();
  assert.equal(geoReplication.status, "live");
});
