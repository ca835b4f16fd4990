import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { addNode, createGate, createTestDatabase, eventually, ManualClock, type TestDatabase } from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { currentRevision, readEvents } from "../log/events.ts";
import { joinAsOrchestrator } from "../nodes/control-plane-nodes.ts";
import { getNode } from "../nodes/nodes.ts";
import { advertise, listHealthReplicas } from "../sessions/health-replicas.ts";
import { createLeaseKeeper, type LeaseKeeper } from "./lease-keeper.ts";
import { listLeases, releaseLease, takeLease } from "./leases.ts";

let database: TestDatabase;
let store: Store;
const runs: { readonly ending: AbortController; readonly done: Promise<void> }[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

beforeEach(async () => {
  await store.db.deleteFrom("leases").execute();
});

afterEach(async () => {
  for (const { ending } of runs) ending.abort();
  await Promise.all(runs.splice(0).map(({ done }) => done));
});

/** Start a keeper on a manual clock. Returns it with a list of its callbacks so far. */
function keep(instance: string) {
  const clock = new ManualClock();
  const told: string[] = [];
  let successes = 0;
  const keeper: LeaseKeeper = createLeaseKeeper({
    store: store.reserved,
    clock,
    log: silentLogger,
    claim: { instance, service: "health", address: "a:1" },
    onHeld: ({ first }) => told.push(first ? "held" : "held again"),
    onDoubt: ({ sinceMs }) => told.push(`doubt since ${sinceMs}`),
    onExpired: (lease) => told.push(`ended ${lease.name}`),
  });
  const ending = new AbortController();
  const done = keeper.run(ending.signal, () => {
    successes += 1;
  });
  runs.push({ ending, done });
  return {
    keeper,
    clock,
    told,
    ending,
    done,
    /** Advance the clock until the keeper has finished an iteration and sleeps again. */
    turn: async (ms: number) => {
      await eventually(() => expect(clock.sleepers).toBe(2));
      const before = successes;
      clock.advance(ms);
      await eventually(() => expect(successes).toBe(before + 1));
      await eventually(() => expect(clock.sleepers).toBe(2));
    },
  };
}

async function counterOf(name: string): Promise<number | undefined> {
  return (await listLeases(store.db)).find((lease) => lease.name === name)?.counter;
}

function take(instance: string, name = instance) {
  return takeLease(store.db, { name, instance, service: "health", address: "b:1" });
}

describe("createLeaseKeeper()", () => {
  it("should take the lease, renew it every two seconds and release it at the end", async () => {
    const { keeper, told, turn, ending, done } = keep("p1");
    await turn(2_000);
    await turn(2_000);
    expect(await counterOf("p1")).toBe(3);
    expect(keeper.held).toBe(true);
    expect(told).toEqual(["held"]);
    ending.abort();
    await done;
    expect(keeper.held).toBe(false);
    expect(await listLeases(store.db)).toEqual([]);
  });

  it("should be in doubt after ten seconds without running, and hold again with the next renewal", async () => {
    const { told, turn, keeper } = keep("p1");
    await turn(2_000);
    await turn(60_000);
    expect(told).toEqual(["held", "doubt since 2000", "held again"]);
    expect(keeper.held).toBe(true);
  });

  it("should not be in doubt before ten seconds have passed", async () => {
    const { told, turn } = keep("p1");
    await turn(2_000);
    await turn(9_999);
    expect(told).toEqual(["held"]);
  });

  it("should be in doubt while a renewal gets no answer", async () => {
    const { told, clock, keeper, turn } = keep("p1");
    await turn(2_000);
    const blocker = await database.openStore("blocker");
    const mayGo = createGate();
    const blocked = blocker.transaction(async (tx) => {
      await tx.selectFrom("leases").select("name").forUpdate().execute();
      clock.advance(2_000);
      // The renewal waits for the row lock, so only the doubt timer sleeps.
      await eventually(() => expect(clock.sleepers).toBe(1));
      clock.advance(8_000);
      await eventually(() => expect(told).toEqual(["held", "doubt since 2000"]));
      expect(keeper.held).toBe(false);
      await mayGo.passed;
    });
    await eventually(() => expect(told).toHaveLength(2));
    mayGo.open();
    await blocked;
    // The late response belongs to a renewal that began long ago, so it does not prove that the lease is held. Only the
    // next renewal proves that.
    await eventually(() => expect(clock.sleepers).toBe(2));
    if (!keeper.held) await turn(2_000);
    expect(told.at(-1)).toBe("held again");
  });

  it("should be in doubt at once when another process ended its lease, and take it again", async () => {
    const { told, turn } = keep("p1");
    await turn(2_000);
    await releaseLease(store.db, "p1", "p1");
    await turn(2_000);
    expect(told).toEqual(["held", "doubt since 2000", "held again"]);
    expect(await counterOf("p1")).toBe(1);
  });

  it("should end a lease whose counter did not move for ten seconds of gapless reads", async () => {
    const { told, turn } = keep("p1");
    await turn(2_000);
    await take("p2");
    for (let turns = 0; turns < 5; turns += 1) await turn(2_000);
    expect(await counterOf("p2")).toBe(1);
    await turn(2_000);
    expect(told).toEqual(["held", "ended p2"]);
    expect(await counterOf("p2")).toBeUndefined();
  });

  it("should keep a renewed lease, and restart the count after a gap in its own reads", async () => {
    const { told, turn } = keep("p1");
    await turn(2_000);
    await take("alive");
    await take("silent");
    for (let turns = 0; turns < 8; turns += 1) {
      await turn(2_000);
      await take("alive");
      if (turns === 3) await turn(5_000);
    }
    expect(told).toEqual(["held"]);
    await turn(2_000);
    expect(told).toEqual(["held", "ended silent"]);
  });

  it("should end everything that belonged to a process", async () => {
    const { turn, told } = keep("p1");
    const identity = { info: {}, infoDigest: "d", labels: {}, address: "c:1" };
    const summary = { cores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
    await take("gone");
    await take("gone", "leader");
    await addNode(store, "compute");
    await joinAsOrchestrator(store, { nodeId: "control", instance: "gone", summary, ...identity });
    await advertise(store.db, {
      instance: "gone",
      agentEndpoint: "c:1",
      internalAddress: "c:2",
      queryEndpoint: "c:3",
    });
    const before = await currentRevision(store.db);
    for (let turns = 0; turns < 7; turns += 1) await turn(2_000);
    expect(told).toContain("ended gone");
    expect((await listLeases(store.db)).map(({ name }) => name)).toEqual(["p1"]);
    expect(await listHealthReplicas(store.db)).toEqual([]);
    expect((await getNode(store.db, "control"))?.connection).toMatchObject({
      state: "DISCONNECTED",
      reason: "LEASE_EXPIRED",
      actor: "replica:p1",
    });
    const { events } = await readEvents(store.db, { after: before, limit: 10 });
    expect(events.map(({ subject, type }) => [subject, type])).toEqual([["control", "node.connection.changed"]]);
  });
});
