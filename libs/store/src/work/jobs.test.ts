import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { lockJob, lockJobs, saveJobVersion } from "./jobs.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

describe("lockJobs()", () => {
  it("should lock several in one order, whatever the order in which they are named, those that are to come too", async () => {
    const { store } = database;
    const names = Array.from({ length: 6 }, (_, index) => `job-${index}`);
    for (const name of names.slice(0, 4)) {
      const made = { name, type: "service", version: 1, count: 1, spec: {}, actor: "", reason: "" } as const;
      await store.transaction((tx) => saveJobVersion(tx, { ...made, specDigest: Buffer.alloc(32) }));
    }
    let within = 0;
    const lockings = Array.from({ length: 8 }, (_, index) =>
      store.transaction(async (tx) => {
        await lockJobs(tx, index % 2 === 0 ? names : [...names].reverse());
        within += 1;
        // Each of them is locked already: one lock more waits for no transaction.
        for (const name of names) expect((await lockJob(tx, name)) === null).toBe(!names.slice(0, 4).includes(name));
        expect(within).toBe(1);
        within -= 1;
      }),
    );
    await expect(Promise.all(lockings)).resolves.toHaveLength(8);
  });
});
