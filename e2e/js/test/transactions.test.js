import assert from "node:assert/strict";
import { test } from "node:test";
import { TableClient, TableTransaction } from "@azure/data-tables";
import { credential, custom, endpoint, newTable, options, refused, rows } from "./support.js";

const stale = `W/"datetime'2001-01-01T00%3A00%3A00Z'"`;
const entity = (rowKey, more = {}) => ({ partitionKey: "p", rowKey, ...more });
const adds = (n, more) => Array.from({ length: n }, (_, i) => ["create", entity(`r${String(i).padStart(3, "0")}`, more)]);

test("every kind of write in one transaction", async (t) => {
  const client = await newTable(t);
  for (const row of ["deleted", "merged", "replaced", "upserted"]) {
    await client.createEntity(entity(row, { A: 1, B: "old" }));
  }
  const { etag } = await client.getEntity("p", "merged");
  const fresh = { B: "new", C: 3 };
  const transaction = new TableTransaction();
  transaction.createEntity(entity("added", fresh));
  transaction.deleteEntity("p", "deleted");
  transaction.updateEntity(entity("merged", fresh), "Merge", { etag });
  transaction.updateEntity(entity("replaced", fresh), "Replace");
  transaction.upsertEntity(entity("upserted", fresh), "Merge");
  transaction.upsertEntity(entity("made", fresh), "Replace");
  const answer = await client.submitTransaction(transaction.actions);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((part) => part.status), [204, 204, 204, 204, 204, 204]);
  // Only the response to an insert names its entity.
  assert.equal(answer.getResponseForEntity("added")?.etag, (await client.getEntity("p", "added")).etag);
  for (const [i, row] of ["added", "deleted", "merged", "replaced", "upserted", "made"].entries()) {
    if (row === "deleted") {
      await refused(client.getEntity("p", row), 404, "ResourceNotFound");
      continue;
    }
    const got = await client.getEntity("p", row);
    const keepsA = row === "merged" || row === "upserted";
    assert.deepEqual(custom(got), keepsA ? { A: 1, ...fresh } : fresh, row);
    assert.equal(answer.subResponses[i].etag, got.etag, row);
  }
});

test("a hundred operations", async (t) => {
  const client = await newTable(t);
  await client.submitTransaction(adds(100, { B: new Uint8Array(1000) }));
  assert.equal((await rows(client)).length, 100);
});

test("transactions that fail do nothing", async (t) => {
  const client = await newTable(t);
  await client.createEntity(entity("there"));
  for (const [name, actions, status, code, prefix] of [
    ["conflict", [...adds(9), ["create", entity("there")]], 409, "EntityAlreadyExists", "9:"],
    ["stale", [...adds(1), ["update", entity("there"), "Merge", { etag: stale }]], 412, "UpdateConditionNotSatisfied", "1:"],
    ["missing", [...adds(2), ["update", entity("missing"), "Replace"]], 404, "ResourceNotFound", "2:"],
    ["missing delete", [["delete", entity("missing")], ...adds(1)], 404, "ResourceNotFound", "0:"],
    ["same row twice", [["create", entity("x")], ["upsert", entity("x"), "Merge"]], 400, "InvalidDuplicateRow", "1:"],
    ["101 operations", adds(101), 400, "InvalidInput", "99:"],
    ["a bad name", [...adds(1), ["create", entity("y", { "a-b": 1 })]], 400, "PropertyNameInvalid", "1:"],
    ["a large value", [...adds(3), ["create", entity("y", { V: "x".repeat(32769) })]], 400, "PropertyValueTooLarge", "3:"],
  ]) {
    await t.test(name, async () => {
      const error = await client.submitTransaction(actions).then(() => assert.fail("it was carried out"), (e) => e);
      assert.deepEqual([error.statusCode, error.code], [status, code], error.message);
      assert.ok(error.message.startsWith(prefix), error.message);
      assert.deepEqual(await rows(client), ["there"]);
    });
  }
  await t.test("a large body", async () => {
    await refused(client.submitTransaction(adds(64, { V: new Uint8Array(65536) })), 413, "RequestBodyTooLarge");
    assert.deepEqual(await rows(client), ["there"]);
  });
  await t.test("no table", async () => {
    const nowhere = new TableClient(endpoint.url, "NoSuchTable", credential, options);
    const error = await nowhere.submitTransaction(adds(2)).then(() => assert.fail("it was carried out"), (e) => e);
    assert.deepEqual([error.statusCode, error.code], [404, "TableNotFound"], error.message);
  });
});
