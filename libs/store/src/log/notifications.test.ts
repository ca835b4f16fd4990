import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Clock, silentLogger } from "@rollcall/process";
import { createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { sql } from "kysely";
import { listenUntil, NotificationArrival } from "./notifications.ts";

const NAME = "cut listener";
const CUTS = 12;
const LONGEST_FIRST_PAUSE_MS = 100;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** An arrival check, of which only the first notification is sent. Later ones repeat it, like a pooler's backlog. */
class RepeatedNotification extends NotificationArrival {
  checks = 0;

  override async notify(channel: string, payload: string): Promise<void> {
    this.checks += 1;
    await super.notify(channel, this.checks === 1 ? payload : "1");
    await super.notify("marker", "");
  }
}

describe("listenUntil()", () => {
  it("should pause longer and longer, but not too long, while it cannot connect", async () => {
    const ending = new AbortController();
    const pausesMs: number[] = [];
    const clock: Pick<Clock, "nowMs" | "sleep"> = {
      nowMs: () => 0,
      sleep: async (ms) => {
        pausesMs.push(ms);
        if (pausesMs.length === 60) ending.abort();
      },
    };
    const unreachable = { ...{ url: "postgres://127.0.0.1:1/none", applicationName: NAME, log: silentLogger } };
    const callbacks = { onNotified: () => {}, onMissed: () => {} };
    await listenUntil(["cut"], { ...unreachable, ...callbacks, clock: clock as Clock }, ending.signal);
    expect(Math.max(...pausesMs.slice(0, 2))).toBeLessThanOrEqual(200);
    // Pauses are random. One of sixty is longer than a second with near certainty.
    expect(Math.max(...pausesMs)).toBeGreaterThan(1_000);
    expect(Math.max(...pausesMs)).toBeLessThanOrEqual(5_000);
  });

  it("should not take a notification of an earlier check for the one that it waits for", async () => {
    const ending = new AbortController();
    const arrival = new RepeatedNotification(database.store.db, silentLogger);
    let markers = 0;
    const untilAborted = (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    const clock: Pick<Clock, "nowMs" | "sleep"> = {
      nowMs: () => 0,
      sleep: async (ms, signal) => {
        // The time to wait for a notification is over once everything that was sent before has arrived.
        if (ms === 5_000) await Promise.race([untilAborted(signal), until("marker", () => markers >= arrival.checks)]);
        else if (arrival.checks > 1) await untilAborted(ending.signal);
      },
    };
    const listening = listenUntil(
      ["marker"],
      {
        ...{ url: database.url, applicationName: "repeated", log: silentLogger, clock: clock as Clock, arrival },
        onNotified: () => {
          markers += 1;
        },
        onMissed: () => {},
      },
      ending.signal,
    );
    try {
      await until("the first check", () => arrival.state !== "unknown");
      expect(arrival.state).toBe("arriving");
      await until("the second check", () => arrival.state === "missing", 15_000);
    } finally {
      ending.abort();
      await listening;
    }
  });

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
