import assert from "node:assert/strict";
import { test } from "node:test";
import { custom, newTable, refused, rows } from "./support.js";

// name, value sent, value returned, and a filter that finds it
const values = [
  ["empty string", "", "", "V eq ''"],
  ["string", "it's \"so\" & <b>\u2028", "it's \"so\" & <b>\u2028", "V eq 'it''s \"so\" & <b>\u2028'"],
  ["pairs", "😀𐍈", "😀𐍈", "V eq '😀𐍈'"],
  ["controls", "\t\n\r\u0001", "\t\n\r\u0001"],
  ["longest string", "x".repeat(32768), "x".repeat(32768)],
  ["true", true, true, "V eq true"],
  ["false", false, false, "V eq false"],
  ["int32", 2147483647, 2147483647, "V eq 2147483647"],
  ["negative int32", -2147483648, -2147483648, "V eq -2147483648"],
  ["double", 0.1, 0.1, "V eq 0.1"],
  ["great double", 1.7976931348623157e308, 1.7976931348623157e308, "V eq 1.7976931348623157e308"],
  ["whole double", { type: "Double", value: 5 }, 5, "V eq 5.0"],
  ["not a number", { type: "Double", value: "NaN" }, "NaN"],
  ["infinity", { type: "Double", value: "-Infinity" }, "-Infinity"],
  ["int64", 9223372036854775807n, 9223372036854775807n, "V eq 9223372036854775807L"],
  ["negative int64", -9223372036854775808n, -9223372036854775808n, "V eq -9223372036854775808L"],
  ["time", new Date("2026-01-02T03:04:05.678Z"), new Date("2026-01-02T03:04:05.678Z"), "V eq datetime'2026-01-02T03:04:05.678Z'"],
  ["first time", new Date("1601-01-01T00:00:00Z"), new Date("1601-01-01T00:00:00Z"), "V eq datetime'1601-01-01T00:00:00Z'"],
  ["guid", { type: "Guid", value: "A455C695-DF98-5678-AAAA-81D3367E5A34" }, { type: "Guid", value: "a455c695-df98-5678-aaaa-81d3367e5a34" }, "V eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'"],
  ["binary", Uint8Array.from({ length: 256 }, (_, i) => i), Uint8Array.from({ length: 256 }, (_, i) => i)],
  ["short binary", new Uint8Array([1, 255]), new Uint8Array([1, 255]), "V eq X'01ff'"],
  ["no bytes", new Uint8Array(0), new Uint8Array(0), "V eq X''"],
  ["longest binary", new Uint8Array(65536), new Uint8Array(65536)],
];

// The SDK returns bytes as a view of a pooled buffer.
function plain(value) {
  return value instanceof Uint8Array ? [...value] : value;
}

test("values of every type", async (t) => {
  const client = await newTable(t);
  for (const [name, sent, want, filter] of values) {
    await t.test(name, async () => {
      await client.createEntity({ partitionKey: "p", rowKey: name, V: sent });
      const got = await client.getEntity("p", name);
      assert.deepEqual(plain(got.V), plain(want));
      await client.upsertEntity({ partitionKey: "p", rowKey: name, V: sent }, "Replace");
      assert.deepEqual(plain((await client.getEntity("p", name)).V), plain(want));
      if (filter) {
        assert.ok((await rows(client, filter)).includes(name), filter);
      }
    });
  }
});

test("types without conversion", async (t) => {
  const client = await newTable(t);
  await client.createEntity({ partitionKey: "p", rowKey: "r", I: 5, L: { type: "Int64", value: "5" }, D: { type: "DateTime", value: "2026-01-02T03:04:05.0000001Z" } });
  const got = await client.getEntity("p", "r", { disableTypeConversion: true });
  assert.deepEqual(got.L, { type: "Int64", value: "5" });
  assert.deepEqual(got.D, { type: "DateTime", value: "2026-01-02T03:04:05.0000001Z" });
  assert.deepEqual(got.I, { type: "Int32", value: "5" });
});

test("invalid entities", async (t) => {
  const client = await newTable(t);
  const many = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`P${i}`, 1]));
  for (const [name, properties, status, code] of [
    ["too many", many(253), 400, "TooManyProperties"],
    ["long name", { ["n".repeat(256)]: 1 }, 400, "PropertyNameTooLong"],
    ["bad name", { "a-b": 1 }, 400, "PropertyNameInvalid"],
    ["long string", { V: "x".repeat(32769) }, 400, "PropertyValueTooLarge"],
    ["long binary", { V: new Uint8Array(65537) }, 400, "PropertyValueTooLarge"],
    ["early time", { V: { type: "DateTime", value: "1600-01-01T00:00:00Z" } }, 400, "OutOfRangeInput"],
    ["not a guid", { V: { type: "Guid", value: "x" } }, 400, "InvalidInput"],
    ["not an int64", { V: { type: "Int64", value: "9223372036854775808" } }, 400, "InvalidInput"],
    ["bad key", { rowKey: "a/b" }, 400, "OutOfRangeInput"],
    ["long key", { rowKey: "k".repeat(1025) }, 400, "PropertyValueTooLarge"],
    ["no row key", { rowKey: undefined }, 400, "PropertiesNeedValue"],
    ["no partition key", { partitionKey: undefined }, 400, "PropertiesNeedValue"],
  ]) {
    await t.test(name, () => refused(client.createEntity({ partitionKey: "p", rowKey: name, ...properties }), status, code));
  }
  assert.deepEqual(await rows(client), []);
});

test("updates and their etags", async (t) => {
  const client = await newTable(t);
  const stale = `W/"datetime'2001-01-01T00%3A00%3A00Z'"`;
  const fresh = { partitionKey: "p", rowKey: "r", B: "new", C: 3 };
  const merged = { A: 1, B: "new", C: 3 };
  const replaced = { B: "new", C: 3 };
  for (const [name, write, want] of [
    ["merge", (etag) => client.updateEntity(fresh, "Merge", { etag }), merged],
    ["replace", (etag) => client.updateEntity(fresh, "Replace", { etag }), replaced],
  ]) {
    await t.test(name, async () => {
      await client.deleteEntity("p", "r").catch(() => {});
      await refused(write("*"), 404, "ResourceNotFound");
      const { etag } = await client.createEntity({ partitionKey: "p", rowKey: "r", A: 1, B: "old" });
      assert.equal((await client.getEntity("p", "r")).etag, etag);
      await refused(write(stale), 412, "UpdateConditionNotSatisfied");
      await refused(write('"x"'), 400, "InvalidInput");
      const written = await write(etag);
      assert.notEqual(written.etag, etag);
      assert.deepEqual(custom(await client.getEntity("p", "r")), want);
      await refused(write(etag), 412, "UpdateConditionNotSatisfied");
      await write("*");
    });
  }
  await t.test("upsert", async () => {
    await client.upsertEntity({ partitionKey: "p", rowKey: "u", A: 1, B: "old" }, "Merge");
    await client.upsertEntity({ ...fresh, rowKey: "u" }, "Merge");
    assert.deepEqual(custom(await client.getEntity("p", "u")), merged);
    await client.upsertEntity({ ...fresh, rowKey: "u" }, "Replace");
    assert.deepEqual(custom(await client.getEntity("p", "u")), replaced);
  });
  await t.test("insert of an existing entity", () => refused(client.createEntity(fresh), 409, "EntityAlreadyExists"));
  await t.test("delete", async () => {
    await refused(client.deleteEntity("p", "r", { etag: stale }), 412, "UpdateConditionNotSatisfied");
    await client.deleteEntity("p", "r");
    await refused(client.deleteEntity("p", "r"), 404, "ResourceNotFound");
    await refused(client.getEntity("p", "r"), 404, "ResourceNotFound");
  });
});
