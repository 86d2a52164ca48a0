// Operations over TLS, and with PATCH tunneled through POST.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AzureNamedKeyCredential } from "@azure/data-tables";
import { custom, needed, newTable, parse, rows } from "./support.js";

async function work(t, connectionString) {
  const at = parse(connectionString);
  const client = await newTable(t, at, new AzureNamedKeyCredential(at.account, at.key));
  await client.createEntity({ partitionKey: "p", rowKey: "r", A: 1 });
  await client.updateEntity({ partitionKey: "p", rowKey: "r", B: 2 }, "Merge");
  await client.upsertEntity({ partitionKey: "p", rowKey: "r", C: 3 }, "Merge");
  await client.upsertEntity({ partitionKey: "p", rowKey: "u", C: 3 }, "Merge");
  await client.submitTransaction([
    ["update", { partitionKey: "p", rowKey: "r", D: 4 }, "Merge"],
    ["upsert", { partitionKey: "p", rowKey: "v", D: 4 }, "Merge"],
    ["delete", { partitionKey: "p", rowKey: "u" }],
  ]);
  assert.deepEqual(custom(await client.getEntity("p", "r")), { A: 1, B: 2, C: 3, D: 4 });
  assert.deepEqual(await rows(client), ["r", "v"]);
}

test("https", async (t) => {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"; // the certificate is self-signed
  t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
  await work(t, needed("TABLEROCK_HTTPS_CONNECTION_STRING"));
});

// For an account on localhost other than the development account, the SDK assumes another
// service and sends MERGE in a header of POST.
test("tunneled merges", async (t) => {
  await work(t, needed("TABLEROCK_LOCALHOST_CONNECTION_STRING"));
});
