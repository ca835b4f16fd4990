import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { countDeclaredObjects, readDeclaredObjects, saveDeclaredObjects } from "./declared-objects.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe("saveDeclaredObjects()", () => {
  it("should store more objects than a statement has parameters, replacing earlier ones", async () => {
    const { store } = database;
    const objects = (owner: string) =>
      Array.from({ length: 14_000 }, (_, index) => ({
        ...{
          name: `webhook/w${index}`,
          owner,
          fields: { url: '"https://receiver.example"' },
          nodeId: null,
          actor: "a",
        },
      }));
    await store.transaction((tx) => saveDeclaredObjects(tx, objects("team")));
    await store.transaction((tx) => saveDeclaredObjects(tx, objects("other")));
    expect(await countDeclaredObjects(store.db)).toBe(14_000);
    const read = await readDeclaredObjects(store.db, { names: ["webhook/w13999"], owner: "", limit: 0 });
    expect([...read]).toEqual([["webhook/w13999", { owner: "other", fields: { url: '"https://receiver.example"' } }]]);
  });
});
