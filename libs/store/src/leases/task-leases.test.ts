import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type Clock, silentLogger, systemClock } from "@rollcall/process";
import { createTestDatabase, eventually, ManualClock, type TestDatabase } from "@rollcall/testkit";
import type { KyselyPlugin, RootOperationNode } from "kysely";
import type { ReservedStore } from "../database/store.ts";
import { readLease, takeLease } from "./leases.ts";
import { type LeasedTask, type LeasedTaskOptions, leasedTask } from "./task-leases.ts";

const NAME = "chore";
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

beforeEach(async () => {
  await database.store.db.deleteFrom("leases").execute();
});

/** A process that runs the task. `stop` ends it as SIGTERM would. */
interface Process {
  readonly task: LeasedTask;
  readonly begun: () => number;
  readonly done: Promise<void>;
  readonly stop: () => Promise<void>;
}

function claimOf(instance: string) {
  return { name: NAME, instance, service: "registry", address: "" };
}

function start(instance: string, changes: Partial<LeasedTaskOptions> = {}): Process {
  const ending = new AbortController();
  let begun = 0;
  const task = leasedTask({
    store: database.store.reserved,
    clock: systemClock,
    log: silentLogger,
    claim: claimOf(instance),
    work: async (signal) => {
      begun += 1;
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    },
    renewEveryMs: 20,
    expiryMs: 300,
    ...changes,
  });
  const done = task.run(ending.signal, () => {});
  // Ignore the error here, because the code that awaits `done` handles it.
  done.catch(() => {});
  return {
    task,
    begun: () => begun,
    done,
    stop: async () => {
      ending.abort(new Error("the process ends"));
      await done;
    },
  };
}

/** Create a store that advances the clock before it responds to some kinds of statements. */
function slowStore(clock: ManualClock, slowMs: (kind: RootOperationNode["kind"]) => number): ReservedStore {
  const kinds = new WeakMap<object, RootOperationNode["kind"]>();
  const plugin: KyselyPlugin = {
    transformQuery: ({ node, queryId }) => {
      kinds.set(queryId, node.kind);
      return node;
    },
    transformResult: async ({ result, queryId }) => {
      const kind = kinds.get(queryId);
      if (kind !== undefined) clock.advance(slowMs(kind));
      return result;
    },
  };
  const { reserved } = database.store;
  return { ...reserved, db: reserved.db.withPlugin(plugin) };
}

const holder = async () => (await readLease(database.store.db, NAME))?.instance;

describe("leasedTask()", () => {
  it("should run in one process, and in another as soon as the first has ended", async () => {
    // Use an expiry that is longer than any pause on a busy machine, so that the lease becomes free only
    // when its holder ends.
    const first = start("i1", { expiryMs: 60_000 });
    await eventually(() => expect(first.task.active).toBe(true));
    const second = start("i2", { expiryMs: 60_000 });
    const counter = (await readLease(database.store.db, NAME))?.counter ?? 0;
    await eventually(async () => {
      expect((await readLease(database.store.db, NAME))?.counter).toBeGreaterThan(counter + 5);
    });
    expect(second.begun()).toBe(0);
    await first.stop();
    expect(first.task.active).toBe(false);
    await eventually(() => expect(second.task.active).toBe(true));
    expect(await holder()).toBe("i2");
    await second.stop();
    expect(await holder()).toBeUndefined();
  });

  it("should take over from a process that no longer renews", async () => {
    await takeLease(database.store.db, claimOf("gone"));
    const standby = start("i1");
    await eventually(() => expect(standby.task.active).toBe(true));
    expect(await holder()).toBe("i1");
    await standby.stop();
  });

  it("should stop its work when the lease is lost, and start again when it is free", async () => {
    const task = start("i1");
    await eventually(() => expect(task.begun()).toBe(1));
    const { db } = database.store;
    await db.updateTable("leases").set({ instance: "thief" }).where("name", "=", NAME).execute();
    await eventually(() => expect(task.task.active).toBe(false));
    expect(await holder()).toBe("thief");
    await eventually(() => expect(task.begun()).toBe(2));
    await task.stop();
  });

  it("should stop its work when it could not renew for too long, whatever its wall clock says", async () => {
    const paused = new AbortController();
    const clock: Clock = {
      ...systemClock,
      wallMs: () => Date.now() - 3_600_000,
      // Delay renewals after the abort until they come too late. The doubt timer still works, because it
      // sleeps for another duration.
      sleep: (ms, signal) => systemClock.sleep(ms === 20 && paused.signal.aborted ? 600_000 : ms, signal),
    };
    const task = start("i1", { clock });
    await eventually(() => expect(task.begun()).toBe(1));
    paused.abort();
    // No other process has taken the lease.
    await eventually(() => expect(task.begun()).toBe(2));
    await task.stop();
  });

  it("should release the lease when its work fails, and report the failure", async () => {
    const task = start("i1", {
      work: () => Promise.reject(new Error("no luck here")),
    });
    await expect(task.done).rejects.toThrow("no luck here");
    expect(await holder()).toBeUndefined();
  });

  it("should not contend before it is able to work", async () => {
    const able = new AbortController();
    const task = start("i1", {
      able: () => new Promise((resolve) => able.signal.addEventListener("abort", () => resolve())),
    });
    const other = start("i2");
    await eventually(() => expect(other.task.active).toBe(true));
    await other.stop();
    expect(task.begun()).toBe(0);
    able.abort();
    await eventually(() => expect(task.task.active).toBe(true));
    await task.stop();
  });

  it("should count its lease as held since the request, not since the answer", async () => {
    const clock = new ManualClock();
    const answerMs = { taken: 299 };
    const store = slowStore(clock, (kind) => (kind === "InsertQueryNode" ? answerMs.taken : 0));
    const task = start("i1", { clock, store, renewEveryMs: 250 });
    await eventually(() => expect(task.begun()).toBe(1));
    await eventually(() => expect(clock.sleepers).toBe(2));
    expect(clock.nowMs()).toBe(299);
    answerMs.taken = 0;
    // Bring the lease into doubt, so that the task takes it again.
    clock.advance(1);
    await eventually(() => expect(task.begun()).toBe(2));
    await task.stop();
  });

  it("should count a renewal since its request, not since the answer", async () => {
    const clock = new ManualClock();
    const answerMs = { renewed: 240 };
    const store = slowStore(clock, (kind) => (kind === "UpdateQueryNode" ? answerMs.renewed : 0));
    const task = start("i1", { clock, store, renewEveryMs: 50 });
    await eventually(() => expect(clock.sleepers).toBe(2));
    // Request a renewal at 50 that gets its response at 290. The lease is held until 350.
    clock.advance(50);
    await eventually(() => expect(clock.nowMs()).toBe(290));
    await eventually(() => expect(clock.sleepers).toBe(2));
    answerMs.renewed = 0;
    expect(task.begun()).toBe(1);
    clock.advance(60);
    await eventually(() => expect(task.begun()).toBe(2));
    await task.stop();
  });

  it("should conclude nothing from another's lease that it was slow to read", async () => {
    await takeLease(database.store.db, claimOf("other"));
    const clock = new ManualClock();
    const answerMs = { read: 1_001 };
    const store = slowStore(clock, (kind) => (kind === "SelectQueryNode" ? answerMs.read : 0));
    const task = start("i1", { clock, store, renewEveryMs: 1_000, expiryMs: 5_000 });
    const turns = async (count: number) => {
      for (let turn = 0; turn < count; turn += 1) {
        await eventually(() => expect(clock.sleepers).toBe(1));
        clock.advance(1_000);
      }
      await eventually(() => expect(clock.sleepers).toBeGreaterThan(0));
    };
    await turns(8);
    expect(await holder()).toBe("other");
    answerMs.read = 0;
    await turns(6);
    await eventually(() => expect(task.task.active).toBe(true));
    expect(await holder()).toBe("i1");
    await task.stop();
  });
});
