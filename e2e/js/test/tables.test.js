import assert from "node:assert/strict";
import { test } from "node:test";
import { TableServiceClient, odata } from "@azure/data-tables";
import { connectionString, newTable, options, refused, service, tableName } from "./support.js";

async function list(filter) {
  const names = [];
  for await (const table of service.listTables({ queryOptions: { filter } })) {
    names.push(table.name);
  }
  return names;
}

test("create and delete tables", async () => {
  const name = tableName();
  await service.createTable(name);
  await service.createTable(name); // the SDK reports success for an existing table
  assert.deepEqual(await list(odata`TableName eq ${name}`), [name]);
  await service.deleteTable(name);
  assert.deepEqual(await list(odata`TableName eq ${name}`), []);
});

test("tables are listed by pages", async () => {
  const prefix = tableName();
  const want = Array.from({ length: 12 }, (_, i) => `${prefix}y${String(i).padStart(2, "0")}`);
  for (const name of want) {
    await service.createTable(name);
  }
  const filter = odata`TableName ge ${prefix} and TableName lt ${`${prefix}z`}`;
  const got = [];
  let token;
  do {
    const pages = service.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 5, continuationToken: token });
    const { value: page } = await pages.next();
    assert.ok(page.length <= 5, `a page of ${page.length}`);
    got.push(...page.map((table) => table.name));
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(got, want);
  for (const name of want) {
    await service.deleteTable(name);
  }
});

test("names", async (t) => {
  for (const [name, status, code] of [
    ["ab", 400, "OutOfRangeInput"],
    ["a".repeat(64), 400, "OutOfRangeInput"],
    ["1abc", 400, "InvalidResourceName"],
    ["my_table", 400, "InvalidResourceName"],
    ["tables", 400, "InvalidInput"],
  ]) {
    await t.test(name, () => refused(service.createTable(name), status, code));
  }
});

test("client from a connection string", async (t) => {
  const client = await newTable(t);
  const other = TableServiceClient.fromConnectionString(connectionString, options);
  const names = [];
  for await (const table of other.listTables()) {
    names.push(table.name);
  }
  assert.ok(names.includes(client.tableName));
});
