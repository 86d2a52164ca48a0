// The previous client library, which many programs still use.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { promisify } from "node:util";
import { endpoint, oddKeys, tableName } from "./support.js";

const require = createRequire(import.meta.url);
const azure = require("azure-storage");
const { TableBatch, TableQuery } = azure;
const edm = azure.TableUtilities.entityGenerator;

const tables = azure.createTableService(endpoint.account, endpoint.key, endpoint.url);
const call = (name, ...args) => promisify(tables[name].bind(tables))(...args);

async function newTable(t) {
  const name = tableName();
  assert.equal((await call("createTableIfNotExists", name)).created, true);
  t.after(() => call("deleteTable", name));
  return name;
}

const entity = (PartitionKey, RowKey, more = {}) => ({ PartitionKey: edm.String(PartitionKey), RowKey: edm.String(RowKey), ...more });

async function rows(table, query) {
  const all = [];
  let token = null;
  do {
    const page = await call("queryEntities", table, query, token);
    all.push(...page.entries.map((e) => e.RowKey._));
    token = page.continuationToken;
  } while (token);
  return all;
}

test("tables", async (t) => {
  const name = await newTable(t);
  assert.equal((await call("createTableIfNotExists", name)).created, false);
  assert.equal((await call("doesTableExist", name)).exists, true);
  assert.equal((await call("doesTableExist", "NoSuchTable")).exists, false);
  const listed = await call("listTablesSegmentedWithPrefix", name, null);
  assert.deepEqual(listed.entries, [name]);
});

test("entities of every type", async (t) => {
  const table = await newTable(t);
  const when = new Date("2026-01-02T03:04:05.678Z");
  await call("insertEntity", table, entity("p", "r", {
    S: edm.String("text"), I: edm.Int32(5), L: edm.Int64("9223372036854775807"), D: edm.Double(0.5), B: edm.Boolean(true),
    G: edm.Guid("a455c695-df98-5678-aaaa-81d3367e5a34"), T: edm.DateTime(when), Y: edm.Binary(Buffer.from([1, 2, 255])),
  }));
  const got = await call("retrieveEntity", table, "p", "r");
  assert.deepEqual([got.S._, got.I._, got.L._, got.D._, got.B._, got.G._], ["text", 5, "9223372036854775807", 0.5, true, "a455c695-df98-5678-aaaa-81d3367e5a34"]);
  assert.equal(got.T._.getTime(), when.getTime());
  assert.deepEqual([...got.Y._], [1, 2, 255]);
  const echoed = await call("insertEntity", table, entity("p", "e", { S: edm.String("x") }), { echoContent: true });
  assert.equal(echoed.S._, "x");
});

test("every kind of write", async (t) => {
  const table = await newTable(t);
  await call("insertEntity", table, entity("p", "r", { A: edm.Int32(1) }));
  const first = await call("retrieveEntity", table, "p", "r");
  await call("mergeEntity", table, entity("p", "r", { B: edm.Int32(2), ".metadata": first[".metadata"] }));
  await assert.rejects(call("replaceEntity", table, entity("p", "r", { ".metadata": first[".metadata"] })), { statusCode: 412, code: "UpdateConditionNotSatisfied" });
  await call("insertOrMergeEntity", table, entity("p", "r", { C: edm.Int32(3) }));
  let got = await call("retrieveEntity", table, "p", "r");
  assert.deepEqual([got.A._, got.B._, got.C._], [1, 2, 3]);
  await call("insertOrReplaceEntity", table, entity("p", "r", { D: edm.Int32(4) }));
  await call("replaceEntity", table, entity("p", "r", { E: edm.Int32(5) }));
  got = await call("retrieveEntity", table, "p", "r");
  assert.deepEqual([got.A, got.D, got.E._], [undefined, undefined, 5]);
  await call("deleteEntity", table, entity("p", "r"));
  await assert.rejects(call("retrieveEntity", table, "p", "r"), { statusCode: 404, code: "ResourceNotFound" });
});

test("queries", async (t) => {
  const table = await newTable(t);
  const want = [];
  for (let i = 0; i < 1250; i += 50) {
    const batch = new TableBatch();
    for (let n = i; n < i + 50; n += 1) {
      want.push(`r${String(n).padStart(4, "0")}`);
      batch.insertEntity(entity("p", want[n], { N: edm.Int32(n), When: edm.DateTime(new Date(n)) }));
    }
    await call("executeBatch", table, batch);
  }
  assert.deepEqual(await rows(table, null), want);
  assert.deepEqual(await rows(table, new TableQuery().where("N lt ?", 7).top(3)), want.slice(0, 7));
  assert.deepEqual(await rows(table, new TableQuery().where("PartitionKey eq ? and RowKey ge ?", "p", "r1240")), want.slice(1240));
  assert.deepEqual(await rows(table, new TableQuery().where(TableQuery.dateFilter("When", azure.TableUtilities.QueryComparisons.EQUAL, new Date(42)))), ["r0042"]);
  const page = await call("queryEntities", table, new TableQuery().select("N").where("N eq ?", 9), null);
  assert.deepEqual(page.entries.map((e) => [e.N._, e.When]), [[9, undefined]]);
});

test("transactions", async (t) => {
  const table = await newTable(t);
  await call("insertEntity", table, entity("p", "there", { A: edm.Int32(1) }));
  const batch = new TableBatch();
  batch.insertEntity(entity("p", "echoed", { A: edm.Int32(2) }), { echoContent: true });
  batch.mergeEntity(entity("p", "there", { B: edm.Int32(2) }));
  batch.insertOrReplaceEntity(entity("p", "upserted"));
  const answers = await call("executeBatch", table, batch);
  assert.equal(answers.length, 3);
  assert.equal(answers[0].entity.A._, 2);
  assert.ok(answers[1].entity[".metadata"].etag.startsWith("W/"));

  const failing = new TableBatch();
  failing.insertEntity(entity("p", "new"));
  failing.insertEntity(entity("p", "there"));
  await assert.rejects(call("executeBatch", table, failing), (error) => error.statusCode === 409 && error.code === "EntityAlreadyExists" && error.message.startsWith("1:"));

  const lone = new TableBatch();
  lone.retrieveEntity("p", "there");
  const [found] = await call("executeBatch", table, lone);
  assert.deepEqual([found.entity.A._, found.entity.B._], [1, 2]);
  const missing = new TableBatch();
  missing.retrieveEntity("p", "missing");
  await assert.rejects(call("executeBatch", table, missing), (error) => error.statusCode === 404 && error.code === "ResourceNotFound");
});

test("keys with unusual characters", async (t) => {
  const table = await newTable(t);
  for (const [i, key] of oddKeys.entries()) {
    await t.test(`${i} ${JSON.stringify(key.slice(0, 20))}`, async () => {
      await call("insertEntity", table, entity(key, key, { V: edm.Int32(i) }));
      assert.equal((await call("retrieveEntity", table, key, key)).V._, i);
      await call("mergeEntity", table, entity(key, key, { W: edm.Int32(i) }));
      const batch = new TableBatch();
      batch.mergeEntity(entity(key, key, { X: edm.Int32(i) }));
      await call("executeBatch", table, batch);
      assert.deepEqual(await rows(table, new TableQuery().where("PartitionKey eq ? and RowKey eq ?", key, key)), [key]);
      await call("deleteEntity", table, entity(key, key));
    });
  }
});

test("policies, properties and signatures", async (t) => {
  const table = await newTable(t);
  await call("insertEntity", table, entity("p", "r"));
  const expiry = new Date("2126-01-02T03:04:05.000Z");
  await call("setTableAcl", table, { policy: { Permissions: "r", Expiry: expiry } });
  const acl = await call("getTableAcl", table);
  assert.deepEqual(Object.keys(acl.signedIdentifiers), ["policy"]);
  const sas = tables.generateSharedAccessSignature(table, { Id: "policy" });
  const guest = azure.createTableServiceWithSas(endpoint.url, sas);
  const read = promisify(guest.retrieveEntity.bind(guest));
  assert.equal((await read(table, "p", "r")).RowKey._, "r");
  await assert.rejects(promisify(guest.insertEntity.bind(guest))(table, entity("p", "s")), { statusCode: 403 });
  const properties = await call("getServiceProperties");
  assert.equal(properties.Logging.Version, "1.0");
});
