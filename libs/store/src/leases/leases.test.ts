import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { advertise, listHealthReplicas, withdraw } from "../sessions/health-replicas.ts";
import { expireLease, listLeases, releaseLease, renewLease, takeLease } from "./leases.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

function claimOf(name: string, instance: string) {
  return { name, instance, service: "health", address: "127.0.0.1:7701" };
}

describe("leases", () => {
  it("should be held by one instance, and renewed only by it", async () => {
    const { db } = database.store;
    expect(await takeLease(db, claimOf("leader", "i1"))).toBe(1);
    expect(await takeLease(db, claimOf("leader", "i2"))).toBeNull();
    expect(await takeLease(db, claimOf("leader", "i1"))).toBe(2);
    expect(await renewLease(db, "leader", "i1")).toBe(3);
    expect(await renewLease(db, "leader", "i2")).toBeNull();
    expect(await renewLease(db, "nothing", "i1")).toBeNull();
    expect(await listLeases(db)).toEqual([{ ...claimOf("leader", "i1"), counter: 3 }]);
    await releaseLease(db, "leader", "i2");
    expect(await listLeases(db)).toHaveLength(1);
    await releaseLease(db, "leader", "i1");
    expect(await listLeases(db)).toEqual([]);
  });

  it("should end only with the observed counter", async () => {
    const { db } = database.store;
    await takeLease(db, claimOf("other", "i1"));
    const observed = { name: "other", instance: "i1", counter: 1 };
    await renewLease(db, "other", "i1");
    expect(await expireLease(db, observed)).toBe(false);
    expect(await expireLease(db, { ...observed, counter: 2, instance: "i2" })).toBe(false);
    expect(await expireLease(db, { ...observed, counter: 2 })).toBe(true);
    expect(await renewLease(db, "other", "i1")).toBeNull();
  });

  it("should be won by one of many concurrent takers", async () => {
    const { db } = database.store;
    const counters = await Promise.all(
      Array.from({ length: 10 }, (_, number) => takeLease(db, claimOf("one", `i${number}`))),
    );
    expect(counters.filter((counter) => counter !== null)).toEqual([1]);
  });
});

describe("health replicas", () => {
  it("should be listed while their lease is held", async () => {
    const { db } = database.store;
    const replica = {
      instance: "r1",
      agentEndpoint: "a:7701",
      internalAddress: "a:7720",
      queryEndpoint: "a:7711",
    };
    await advertise(db, { ...replica, agentEndpoint: "old:1" });
    await advertise(db, replica);
    expect(await listHealthReplicas(db)).toEqual([]);
    await takeLease(db, claimOf("r1", "r1"));
    expect(await listHealthReplicas(db)).toEqual([{ ...replica, sessions: 0 }]);
    await renewLease(db, "r1", "r1", { sessions: 7 });
    // Check that a task's lease does not count as another replica.
    await takeLease(db, claimOf("upkeep", "r1"));
    expect(await listHealthReplicas(db)).toEqual([{ ...replica, sessions: 7 }]);
    await withdraw(db, "r1");
    expect(await listHealthReplicas(db)).toEqual([]);
  });

  it("should no longer be found at an address that a later replica has", async () => {
    const { db } = database.store;
    const at = (instance: string, internalAddress: string) =>
      advertise(db, { instance, agentEndpoint: ":7701", internalAddress, queryEndpoint: "" });
    for (const instance of ["killed", "other", "successor"]) {
      await takeLease(db, claimOf(instance, instance));
    }
    await at("killed", "a:7720");
    await at("other", "b:7720");
    expect(await at("successor", "a:7720")).toEqual(["killed"]);
    expect(await at("successor", "a:7720")).toEqual([]);
    const addresses = (await listHealthReplicas(db)).map((it) => [it.instance, it.internalAddress]);
    expect(addresses).toEqual([
      ["killed", ""],
      ["other", "b:7720"],
      ["successor", "a:7720"],
    ]);
  });
});
