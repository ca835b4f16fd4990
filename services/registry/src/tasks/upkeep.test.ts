import { randomBytes, randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics, silentLogger, superviseTasks, systemClock } from "@rollcall/process";
import { listUpkeepRuns, readEvents, type Store } from "@rollcall/store";
import { createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { makeToken } from "../testing/join-tokens.ts";
import { makeHistory } from "../testing/record.ts";
import { DEFAULT_CONFIG } from "../testing/seed.ts";
import { registryChores } from "./registry-chores.ts";
import { type Chore, upkeep } from "./upkeep.ts";

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const EVERY_SECOND = "* * * * * *";

let database: TestDatabase;
let store: Store;
let endings: (() => Promise<void>)[];

beforeEach(async () => {
  database = await createTestDatabase();
  ({ store } = database);
  endings = [];
});

afterEach(async () => {
  await Promise.all(endings.map((end) => end()));
  await database.drop();
});

/** Columns of a token that is no longer valid. */
interface TokenEnd {
  readonly expires_at?: Date;
  readonly revoked_at?: Date;
  readonly revoked_by?: string;
  readonly revoke_reason?: string;
}

function start(instance: string, chores: readonly Chore[]) {
  const ending = new AbortController();
  const metrics = createMetrics({ defaults: false });
  const shared = { store, clock: systemClock, log: silentLogger };
  const times = { renewEveryMs: 25, expiryMs: 400 };
  const task = upkeep({ ...shared, ...times, instance, metrics, chores });
  const { done } = superviseTasks([task], { ...shared, signal: ending.signal });
  const stop = async () => {
    ending.abort(new Error("the process ends"));
    await done;
  };
  endings.push(stop);
  return { task, metrics, stop };
}

const runOf = async (name: string) => (await listUpkeepRuns(store.db)).find((run) => run.name === name);

describe("upkeep()", () => {
  it("should run each chore on schedule in one of two registries, and in the other when that one ends", async () => {
    const doneBy: string[] = [];
    const chore = (instance: string): Chore => ({
      name: "sweep",
      schedule: EVERY_SECOND,
      overdueAfterMs: HOUR_MS,
      run: async () => doneBy.push(instance),
    });
    const first = start("i1", [chore("i1")]);
    await eventually(() => expect(first.task.active).toBe(true));
    start("i2", [chore("i2")]);
    // The first run was overdue, and the next was on schedule.
    await eventually(() => expect(doneBy.length).toBeGreaterThanOrEqual(2));
    expect(new Set(doneBy)).toEqual(new Set(["i1"]));
    await first.stop();
    const before = doneBy.length;
    await eventually(() => expect(doneBy.length).toBeGreaterThan(before));
    expect(new Set(doneBy.slice(before))).toEqual(new Set(["i2"]));
    await eventually(async () =>
      expect(await runOf("sweep")).toMatchObject({
        instance: "i2",
        outcome: "SUCCEEDED",
        rows: BigInt(doneBy.length),
        runs: BigInt(doneBy.length),
        endedAtMs: expect.any(Number),
      }),
    );
    expect(await renderMetrics(first.metrics)).toContain(
      `rollcall_upkeep_runs_total{chore="sweep",outcome="succeeded"} ${before}`,
    );
  });

  it("should record a failed chore, and run the others", async () => {
    const often = { schedule: "0 0 1 1 *", overdueAfterMs: HOUR_MS };
    start("i1", [
      { name: "bad", ...often, run: () => Promise.reject(new Error("password=secret")) },
      { name: "good", ...often, run: async () => 3 },
    ]);
    await eventually(async () => expect(await runOf("good")).toMatchObject({ outcome: "SUCCEEDED", rows: 3n }));
    expect(await runOf("bad")).toMatchObject({
      outcome: "FAILED",
      message: "failed; see the log of i1",
    });
  });
});

describe("registryChores()", () => {
  const ago = (ms: number) => new Date(Date.now() - ms);
  /** Create a token that has ended only in this way. Returns its id. */
  const endedToken = async (end: TokenEnd): Promise<string> => {
    const { id } = await makeToken(store, { ttlMs: null });
    await store.db.updateTable("join_tokens").set(end).where("id", "=", id).execute();
    return id;
  };

  it("should delete events after 72 hours, nonces and request ids after a day, and tombstones after 30", async () => {
    const { db } = store;
    const ages = (days: number) => [ago(days * DAY_MS + HOUR_MS), ago(days * DAY_MS - HOUR_MS)];
    const challenges = ages(1).map((used_at) => ({ nonce: randomBytes(40), used_at }));
    await db.insertInto("used_challenges").values(challenges).execute();
    const requests = ages(1).map((created_at, index) => ({
      caller: "token:x",
      method: "/m",
      request_id: `r${index}`,
      digest: Buffer.alloc(32),
      created_at,
    }));
    await db.insertInto("request_ids").values(requests).execute();
    const tombstones = ages(30).map((removed_at, index) => ({
      node_id: `n${index}`,
      node_type: "COMPUTE" as const,
      removed_at,
      actor: "token:x",
      reason: "DELETED",
      message: "",
      last_epoch: 0,
      last_state: "{}",
    }));
    await db.insertInto("node_tombstones").values(tombstones).execute();
    const ended = await Promise.all(
      ages(30).flatMap((at) => [
        endedToken({ expires_at: at }),
        endedToken({ revoked_at: at, revoked_by: "token:x", revoke_reason: "" }),
      ]),
    );
    const lasting = await makeToken(store, { ttlMs: null });
    const access = ["old", "recent", "configured"].flatMap((name) => {
      const at = ago(name === "recent" ? 30 * DAY_MS - HOUR_MS : 30 * DAY_MS + HOUR_MS);
      const shared = { role: "viewer", created_by: name === "configured" ? "system" : "token:x" };
      const token = () => ({ ...shared, id: randomUUID(), name, hash: randomBytes(32) });
      return [
        { ...token(), expires_at: at },
        { ...token(), revoked_at: at, revoked_by: "token:x", revoke_reason: "" },
      ];
    });
    await Promise.all(access.map((token) => db.insertInto("access_tokens").values(token).execute()));
    await makeHistory(store, 4);
    const { events } = await readEvents(db, { after: 0n, limit: 10 });
    const [old, kept] = ages(3);
    await db.updateTable("events").set({ at: kept }).execute();
    const oldest = events.slice(0, 2).map(({ revision }) => revision);
    await db.updateTable("events").set({ at: old }).where("revision", "in", oldest).execute();

    const { signal } = new AbortController();
    const rows = await Promise.all(
      registryChores({
        ...{ store, clock: systemClock, log: silentLogger, config: DEFAULT_CONFIG },
      }).map(async (chore) => [chore.name, await chore.run(signal)]),
    );

    expect(Object.fromEntries(rows)).toEqual({
      "compact-events": 2,
      "prune-tombstones": 1,
      "prune-join-tokens": 2,
      "prune-access-tokens": 2,
      "prune-request-ids": 1,
      "prune-challenges": 1,
      "collect-nodes": 0,
    });
    expect(await db.selectFrom("used_challenges").select("nonce").execute()).toEqual([{ nonce: challenges[1]?.nonce }]);
    expect(await db.selectFrom("request_ids").select("request_id").execute()).toEqual([{ request_id: "r1" }]);
    expect(await db.selectFrom("node_tombstones").select("node_id").execute()).toEqual([{ node_id: "n1" }]);
    const tokens = await db.selectFrom("join_tokens").select("id").execute();
    const kept30 = await db.selectFrom("access_tokens").select("name").orderBy("number").execute();
    expect(kept30.map(({ name }) => name).sort()).toEqual(
      // A revoked token from the configuration must not become valid again because its row was deleted.
      ["configured", "configured", "recent", "recent"],
    );
    expect(tokens.map(({ id }) => id).sort()).toEqual([...ended.slice(2), lasting.id].sort());
    expect((await readEvents(db, { after: 0n, limit: 10 })).events).toHaveLength(2);
  });
});
