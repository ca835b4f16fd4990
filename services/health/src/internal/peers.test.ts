import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { StoreUnavailableError } from "@rollcall/errors";
import { silentLogger } from "@rollcall/process";
import { advertise, listHealthReplicas, type ReservedStore, releaseLease, takeLease } from "@rollcall/store";
import { createTestDatabase, ManualClock, type TestDatabase } from "@rollcall/testkit";
import { Advertiser } from "./advertise.ts";
import { connectPeers } from "./connect-peers.ts";
import type { Peers } from "./peers.ts";

const MINUTE_MS = 60_000;
let database: TestDatabase;
let peers: Peers;
let clock: ManualClock;
let isAway: boolean;

beforeAll(async () => {
  database = await createTestDatabase();
});

beforeEach(async () => {
  const { db } = database.store;
  await db.deleteFrom("leases").execute();
  await db.deleteFrom("health_replicas").execute();
  isAway = false;
  clock = new ManualClock();
  peers = connectPeers({ store: failing(), instance: "own", clock, log: silentLogger });
});

afterEach(() => peers.close());

afterAll(() => database.drop());

/** A store that is sometimes unavailable. */
function failing(): ReservedStore {
  const { reserved } = database.store;
  const db = reserved.db.withPlugin({
    transformQuery: ({ node }) => {
      if (isAway) throw new StoreUnavailableError("the database is away");
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  return { ...reserved, db };
}

async function live(instance: string, port: number): Promise<void> {
  const { db } = database.store;
  await takeLease(db, { name: instance, instance, service: "health", address: "" });
  const internalAddress = `127.0.0.1:${port}`;
  await advertise(db, { instance, agentEndpoint: `${instance}:1`, internalAddress, queryEndpoint: "" });
}

const instances = () => peers.known().map(({ instance }) => instance);

describe("Peers", () => {
  it("should know all others that hold their lease, and remember one without a lease for ten minutes", async () => {
    for (const [index, instance] of ["own", "a", "b"].entries()) await live(instance, 10_000 + index);
    await peers.refresh(0);
    expect([instances(), peers.otherEndpoints]).toEqual([
      ["a", "b"],
      ["a:1", "b:1"],
    ]);
    await releaseLease(database.store.db, "a", "a");
    expect(await peers.find("own")).toBeNull();
    clock.advance(2_000);
    expect(await peers.find("a")).toBeNull();
    expect([instances(), peers.remembered("a")?.instance]).toEqual([["b"], "a"]);
    clock.advance(10 * MINUTE_MS - 2_000);
    await peers.refresh(0);
    expect(peers.remembered("a")?.instance).toBe("a");
    clock.advance(1);
    await peers.refresh(0);
    expect(peers.remembered("a")).toBeNull();
  });

  it("should forget a replica at once when another one has its address", async () => {
    await live("a", 10_001);
    await peers.refresh(0);
    await releaseLease(database.store.db, "a", "a");
    await live("successor", 10_001);
    await peers.refresh(0);
    expect([instances(), peers.remembered("a")]).toEqual([["successor"], null]);
  });

  it("should find a new replica at once, and keep its list while the store is unavailable", async () => {
    await peers.refresh(0);
    await live("late", 10_001);
    expect((await peers.find("late"))?.instance).toBe("late");
    isAway = true;
    clock.advance(MINUTE_MS);
    expect((await peers.find("late"))?.instance).toBe("late");
  });
});

describe("Advertiser", () => {
  const listed = async () => (await listHealthReplicas(database.store.db)).map(({ agentEndpoint }) => agentEndpoint);

  it("should advertise its replica once the store is back, and repeat it only on request", async () => {
    const { db } = database.store;
    await takeLease(db, { name: "own", instance: "own", service: "health", address: "" });
    const advertiser = new Advertiser({ store: failing(), instance: "own", log: silentLogger });
    await advertiser.turn();
    advertiser.set({ agentEndpoint: "own:1", internalAddress: "", queryEndpoint: "" });
    isAway = true;
    await expect(advertiser.turn()).rejects.toThrow("the database is away");
    isAway = false;
    await advertiser.turn();
    expect(await listed()).toEqual(["own:1"]);
    await db.deleteFrom("health_replicas").execute();
    await advertiser.turn();
    expect(await listed()).toEqual([]);
    advertiser.repeat();
    await advertiser.turn();
    expect(await listed()).toEqual(["own:1"]);
    await advertiser.hideFromAgents();
    expect(await listed()).toEqual([""]);
  });
});
