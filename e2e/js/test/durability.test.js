// Kills a server while the SDK writes, and checks its data after a restart.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import { needed, options, parse } from "./support.js";

/** Starts a server on a directory, or on the database of TABLEROCK_DATA_FLAGS, and waits until it answers. */
async function serve(dir) {
  const ready = join(dir, "ready.json");
  await rm(ready, { force: true });
  const data = process.env.TABLEROCK_DATA_FLAGS?.split(" ") ?? ["--data", join(dir, "data")];
  const child = spawn(needed("TABLEROCK_PROGRAM"), ["serve", "--listen", "127.0.0.1:0", "--ready-file", ready, ...data], { stdio: "ignore" });
  const ended = once(child, "exit");
  for (;;) {
    const text = await readFile(ready, "utf8").catch(() => "");
    if (text.endsWith("}\n") || text.endsWith("}")) {
      return { at: parse(JSON.parse(text).connection_string), child, ended };
    }
    assert.equal(child.exitCode, null, "the server ended before it was ready");
    await pause(2);
  }
}

test("acknowledged writes survive SIGKILL", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "tablerock-js-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const acknowledged = new Map();
  for (let round = 0; round < 3; round += 1) {
    const { at, child, ended } = await serve(dir);
    t.after(() => child.kill("SIGKILL"));
    const client = new TableClient(at.url, "Table", new AzureNamedKeyCredential(at.account, at.key), options);
    await client.createTable();
    const found = new Map();
    for await (const entity of client.listEntities()) {
      found.set(entity.rowKey, entity.V);
    }
    for (const [row, V] of acknowledged) {
      assert.equal(found.get(row), V, `round ${round}: ${row}`);
    }
    let answers = 0;
    const write = async (writer) => {
      for (let i = 0; ; i += 1) {
        const batch = Array.from({ length: 5 }, (_, n) => ({ partitionKey: `p${writer}`, rowKey: `${round} ${writer} ${i} ${n}`, V: `${i}` }));
        await client.submitTransaction(batch.map((entity) => ["create", entity]));
        batch.forEach((entity) => acknowledged.set(entity.rowKey, entity.V));
        answers += 1;
        if (answers === 60) {
          child.kill("SIGKILL");
        }
      }
    };
    const outcomes = await Promise.allSettled([0, 1, 2, 3].map(write));
    assert.ok(outcomes.every((o) => o.status === "rejected"));
    await ended;
    assert.ok(answers >= 60, `only ${answers} answers: ${outcomes[0].reason}`);
  }
});
