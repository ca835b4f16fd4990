import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Clock, silentLogger } from "@rollcall/process";
import { createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { sql } from "kysely";
import { listenUntil } from "./notifications.ts";

const NAME = "cut listener";
const CUTS = 12;
const LONGEST_FIRST_PAUSE_MS = 100;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe("listenUntil()", () => {
  it("should listen again soon after each of many cuts, because each connection in between worked", async () => {
    const ending = new AbortController();
    const pausesMs: number[] = [];
    let times = 0;
    const clock: Pick<Clock, "nowMs" | "sleep"> = {
      nowMs: () => 0,
      // End pauses between two connections at once. Any longer sleep waits for the end of its connection.
      sleep: async (ms, signal) => {
        if (ms <= 5_000) pausesMs.push(ms);
        else await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    };
    const listening = listenUntil(
      ["cut"],
      {
        ...{ url: database.url, applicationName: NAME, log: silentLogger, clock: clock as Clock },
        onNotified: () => {},
        onMissed: () => {
          times += 1;
        },
      },
      ending.signal,
    );
    try {
      for (let cut = 1; cut <= CUTS; cut += 1) {
        await until(`connection ${cut}`, () => times === cut);
        await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${NAME}`.execute(
          database.store.db,
        );
      }
      await until("the last connection", () => times === CUTS + 1);
      expect(pausesMs).toHaveLength(CUTS);
      expect(Math.max(...pausesMs)).toBeLessThan(LONGEST_FIRST_PAUSE_MS);
    } finally {
      ending.abort();
      await listening;
    }
  });
});
