// Makes __azurite_db_table__.json beside this script: the file in which Azurite keeps its
// tables. It starts Azurite from npm, writes tables of two accounts with its REST API and
// stops it, so that Azurite writes the file. Needs Node.js 18 or newer and npm:
//
//   node make.mjs [path of azurite-table's main.js]
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const version = "3.35.0"; // 3.37.0 needs Node.js 22
const port = 25702;
const accounts = {
  devstoreaccount1: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
  shop: Buffer.from("the key of the account shop").toString("base64"),
};

const dir = mkdtempSync(join(tmpdir(), "azurite-"));
const [program, first] = process.argv[2]
  ? ["node", [process.argv[2]]]
  : ["npx", ["--yes", "-p", `azurite@${version}`, "azurite-table"]];
const azurite = spawn(program, [...first, "--location", dir, "--tablePort", String(port), "--silent", "--skipApiVersionCheck", "--disableTelemetry"], {
  stdio: ["ignore", "inherit", "inherit"],
  env: { ...process.env, AZURITE_ACCOUNTS: Object.entries(accounts).map(([name, key]) => `${name}:${key}`).join(";") },
});
const ended = new Promise((resolve) => azurite.on("exit", resolve));

// request sends one request with a SharedKeyLite signature.
async function request(account, method, path, body, headers = {}) {
  const date = new Date().toUTCString();
  const toSign = `${date}\n/${account}/${account}/${path}`;
  const signature = createHmac("sha256", Buffer.from(accounts[account], "base64")).update(toSign, "utf8").digest("base64");
  const response = await fetch(`http://127.0.0.1:${port}/${account}/${path}`, {
    method,
    body: body && JSON.stringify(body),
    headers: {
      "x-ms-date": date,
      "x-ms-version": "2020-12-06",
      Authorization: `SharedKeyLite ${account}:${signature}`,
      Accept: "application/json;odata=minimalmetadata",
      "Content-Type": "application/json",
      ...headers,
    },
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
}

const everyType = (partition, row, more = {}) => ({
  PartitionKey: partition,
  RowKey: row,
  Text: 'line\nfeed, "quotes" and 表😀',
  Empty: "",
  Flag: true,
  Small: -2147483648,
  "Big@odata.type": "Edm.Int64",
  Big: "-9223372036854775808",
  Half: 0.5,
  "Whole@odata.type": "Edm.Double",
  Whole: 5.0,
  "Never@odata.type": "Edm.Double",
  Never: "NaN",
  "Most@odata.type": "Edm.Double",
  Most: "-Infinity",
  "At@odata.type": "Edm.DateTime",
  At: "2024-02-29T23:59:59.1234567Z",
  "Id@odata.type": "Edm.Guid",
  Id: "a455c695-df98-5678-aaaa-81d3367e5a34",
  "Bytes@odata.type": "Edm.Binary",
  Bytes: "AAECAw==",
  ...more,
});

async function fill() {
  for (let tries = 0; ; tries++) {
    try {
      await request("devstoreaccount1", "POST", "Tables", { TableName: "Types" });
      break;
    } catch (e) {
      if (tries === 600 || e instanceof Error && !e.cause) throw e;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  await request("devstoreaccount1", "POST", "Types", everyType("all", "inserted"));
  const upserted = everyType("all", "upserted");
  await request("devstoreaccount1", "PUT", "Types(PartitionKey='all',RowKey='upserted')", upserted);
  await request("devstoreaccount1", "POST", "Types", { PartitionKey: "all", RowKey: "merged", Kept: 1 });
  await request("devstoreaccount1", "PATCH", "Types(PartitionKey='all',RowKey='merged')", {
    "Added@odata.type": "Edm.Int64",
    Added: "7",
  }, { "If-Match": "*" });
  await request("devstoreaccount1", "POST", "Types", { PartitionKey: "", RowKey: "", Note: "empty keys" });
  await request("devstoreaccount1", "POST", "Types", { PartitionKey: "it's 100%", RowKey: "ключ", Note: "odd keys" });
  await request("devstoreaccount1", "POST", "Tables", { TableName: "Empty" });
  await request("devstoreaccount1", "POST", "Tables", { TableName: "Dropped" });
  await request("devstoreaccount1", "POST", "Dropped", { PartitionKey: "a", RowKey: "b" });
  await request("devstoreaccount1", "DELETE", "Tables('Dropped')");
  await request("shop", "POST", "Tables", { TableName: "Orders" });
  for (let i = 0; i < 20; i++) {
    await request("shop", "POST", "Orders", { PartitionKey: i % 2 ? "eu" : "us", RowKey: String(i).padStart(4, "0"), Total: i + 0.25, Count: i });
  }
}

try {
  await fill();
} finally {
  azurite.kill("SIGINT");
  await ended;
}
copyFileSync(join(dir, "__azurite_db_table__.json"), join(dirname(fileURLToPath(import.meta.url)), "__azurite_db_table__.json"));
rmSync(dir, { recursive: true });
