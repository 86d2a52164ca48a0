import assert from "node:assert/strict";
import { test } from "node:test";
import { newTable, oddKeys, quoted, refused, rows } from "./support.js";

test("keys with unusual characters", async (t) => {
  const client = await newTable(t);
  for (const [i, key] of oddKeys.entries()) {
    await t.test(`${i} ${JSON.stringify(key.slice(0, 20))}`, async () => {
      for (const [partitionKey, rowKey] of [[key, "row"], ["partition", key], [key, key]]) {
        const check = async (V) => {
          const got = await client.getEntity(partitionKey, rowKey);
          assert.deepEqual([got.partitionKey, got.rowKey, got.V], [partitionKey, rowKey, V]);
        };
        await client.createEntity({ partitionKey, rowKey, V: 1 });
        await check(1);
        await client.updateEntity({ partitionKey, rowKey, V: 2 }, "Merge");
        await check(2);
        await client.upsertEntity({ partitionKey, rowKey, V: 3 }, "Replace");
        await check(3);
        const filter = `PartitionKey eq ${quoted(partitionKey)} and RowKey eq ${quoted(rowKey)} and V eq 3`;
        assert.deepEqual(await rows(client, filter), [rowKey]);
        await client.deleteEntity(partitionKey, rowKey);
        await refused(client.getEntity(partitionKey, rowKey), 404, "ResourceNotFound");
      }
    });
  }
});

test("transactions on keys with unusual characters", async (t) => {
  const client = await newTable(t);
  for (const [i, partitionKey] of oddKeys.entries()) {
    await t.test(`${i} ${JSON.stringify(partitionKey.slice(0, 20))}`, async () => {
      await client.submitTransaction([
        ["create", { partitionKey, rowKey: partitionKey, V: 1 }],
        ["upsert", { partitionKey, rowKey: "other", V: 1 }, "Merge"],
      ]);
      await client.submitTransaction([
        ["update", { partitionKey, rowKey: partitionKey, V: 2 }, "Replace"],
        ["delete", { partitionKey, rowKey: "other" }],
      ]);
      assert.equal((await client.getEntity(partitionKey, partitionKey)).V, 2);
    });
  }
});

test("empty keys", async (t) => {
  const client = await newTable(t);
  for (const [partitionKey, rowKey] of [["", ""], ["", "r"], ["p", ""]]) {
    await client.createEntity({ partitionKey, rowKey, V: 1 });
    await client.updateEntity({ partitionKey, rowKey, V: 2 }, "Merge");
    assert.equal((await client.getEntity(partitionKey, rowKey)).V, 2);
    await client.deleteEntity(partitionKey, rowKey);
  }
  assert.deepEqual(await rows(client), []);
});

test("names of properties in filters and selections", async (t) => {
  const client = await newTable(t);
  await client.createEntity({ partitionKey: "p", rowKey: "r", "数量": 5, _x: 1, "Größe": 2 });
  assert.deepEqual(await rows(client, "数量 eq 5 and _x eq 1 and Größe eq 2"), ["r"]);
  const got = await client.getEntity("p", "r", { queryOptions: { select: ["数量", "Größe"] } });
  assert.deepEqual([got["数量"], got["Größe"], got._x], [5, 2, undefined]);
});
