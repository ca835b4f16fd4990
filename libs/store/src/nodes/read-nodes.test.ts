import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import type { Store } from "../database/store.ts";
import { countThatFit, readNodes } from "./read-nodes.ts";

const KIB = 1_024;
let database: TestDatabase;
let store: Store;

/** Add a node whose reported information is this many bytes long. */
async function describeIn(id: string, bytes: number, text = "md5(n::text)"): Promise<void> {
  await addNode(store, id);
  await sql`
    update nodes set info = jsonb_build_object('hostname', (
      select left(string_agg(${sql.raw(text)}, ''), ${bytes}::integer)
      from generate_series(1, ${Math.ceil(bytes / 32)}::integer) as n
    )) where id = ${id}`.execute(store.db);
}

const ids = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${prefix}-${String(at).padStart(3, "0")}`);
const SMALL = ids("small", 200);
const LARGE = ids("large", 40);
const HUGE = ids("huge", 3);
const BLOWN_UP = ids("blown-up", 3);

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  for (const id of SMALL) await addNode(store, id);
  for (const id of LARGE) await describeIn(id, 100 * KIB);
  for (const id of HUGE) await describeIn(id, 900 * KIB);
  // Postgres compresses this text to a hundredth of its size.
  for (const id of BLOWN_UP) await describeIn(id, 900 * KIB, "'compressible compressible comp!'");
});
afterAll(() => database.drop());

async function piecesOf(wanted: readonly string[]): Promise<readonly (readonly string[])[]> {
  const pieces: (readonly string[])[] = [];
  for await (const nodes of readNodes(store.db, wanted)) pieces.push(nodes.map(({ id }) => id));
  return pieces;
}

describe("readNodes()", () => {
  it("should read nodes in the requested order, without missing ones", async () => {
    const wanted = ["nobody", ...SMALL.toReversed(), ...ids("absent", 100), "small-003"];
    const read = (await piecesOf(wanted)).flat();
    expect(read).toEqual([...SMALL.toReversed(), "small-003"]);
    expect(await piecesOf(["nobody"])).toEqual([]);
    expect(await piecesOf([])).toEqual([]);
  });

  it("should limit a piece to a megabyte, however well it compresses", async () => {
    const wanted = [...LARGE, ...HUGE, ...BLOWN_UP, ...SMALL];
    const pieces = await piecesOf(wanted);
    expect(pieces.flat()).toEqual(wanted);
    for (const piece of pieces) {
      const large = piece.filter((id) => id.startsWith("large")).length;
      const huge = piece.filter((id) => /^(huge|blown-up)/.test(id)).length;
      expect(large * 100 + huge * 900).toBeLessThan(1_024);
    }
    expect(pieces.length).toBeLessThan(30);
  });
});

describe("countThatFit()", () => {
  it.each([
    ["all that are small", SMALL.slice(0, 50), 50],
    ["those that fit", LARGE, 5],
    ["one at least", HUGE, 1],
    ["none of none", [], 0],
  ])("should count %s", async (_, wanted, count) => {
    expect(await countThatFit(store.db, wanted, 512 * KIB)).toBe(count);
  });
});
