import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { createTestDatabase, ManualClock, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { AccessTokenUses } from "./access-token-uses.ts";
import { ensureAccessToken, getAccessToken } from "./access-tokens.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of ["a", "b"]) {
    const hash = new Uint8Array(32).fill(id.charCodeAt(0));
    await ensureAccessToken(database.store.db, { id, name: id, role: "viewer", hash });
  }
});
afterAll(() => database.drop());

function usesOf(clock: ManualClock, store: Pick<TestDatabase["store"], "lane" | "db"> = database.store) {
  return new AccessTokenUses({ store, clock, log: silentLogger });
}

async function secondsSinceUse(id: string): Promise<number | null> {
  const { rows } = await sql<{ age: number | null }>`
    select extract(epoch from now() - last_used_at)::float8 as age from access_tokens where id = ${id}
  `.execute(database.store.db);
  return rows[0]?.age ?? null;
}

describe("AccessTokenUses", () => {
  it("should write when tokens were last used, with a delay", async () => {
    const clock = new ManualClock();
    const uses = usesOf(clock);
    uses.note("a");
    expect(await secondsSinceUse("a")).toBeNull();
    clock.advance(3_600_000);
    await uses.write();
    expect(await secondsSinceUse("a")).toBeGreaterThanOrEqual(3_600);
    expect(await secondsSinceUse("b")).toBeNull();
  });

  it("should never overwrite a later use from another process", async () => {
    const clock = new ManualClock();
    const [early, late] = [usesOf(clock), usesOf(clock)];
    early.note("b");
    clock.advance(60_000);
    late.note("b");
    await late.write();
    const written = await getAccessToken(database.store.db, "b");
    await early.write();
    expect(await getAccessToken(database.store.db, "b")).toEqual(written);
  });

  it("should write once a minute, and the rest when it stops", async () => {
    const clock = new ManualClock();
    const uses = usesOf(clock);
    const ending = new AbortController();
    const running = uses.run(ending.signal, () => {});
    clock.advance(0);
    uses.note("a");
    ending.abort();
    await running;
    expect(await secondsSinceUse("a")).toBeLessThan(3_600);
  });

  it("should keep a use that is noted while it writes an older one", async () => {
    const clock = new ManualClock();
    const uses = usesOf(clock);
    await sql`update access_tokens set last_used_at = null`.execute(database.store.db);
    uses.note("a");
    clock.advance(3_600_000);
    const writing = uses.write();
    uses.note("a");
    await writing;
    expect(await secondsSinceUse("a")).toBeGreaterThanOrEqual(3_600);
    await uses.write();
    expect(await secondsSinceUse("a")).toBeLessThan(3_600);
  });

  it("should keep uses that it could not write", async () => {
    const clock = new ManualClock();
    const state = { away: true };
    const uses = usesOf(clock, {
      lane: "calls",
      get db() {
        if (state.away) throw new Error("the database is away");
        return database.store.db;
      },
    });
    await sql`update access_tokens set last_used_at = null`.execute(database.store.db);
    uses.note("a");
    await expect(uses.write()).rejects.toThrow("away");
    state.away = false;
    await uses.write();
    expect(await secondsSinceUse("a")).not.toBeNull();
  });
});
