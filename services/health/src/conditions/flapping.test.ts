import { describe, expect, it } from "@jest/globals";
import { GoodbyeKind } from "@rollcall/api/rollcall/health/v1/health_pb";
import { eventually, saveHolds } from "@rollcall/testkit";
import {
  age,
  change,
  flap,
  holdsOf,
  info,
  join,
  keep,
  newAgent,
  report,
  rig,
  type Stream,
  told,
  useConditionsRig,
} from "../testing/conditions-rig.ts";
import { recordOf } from "../testing/record.ts";

useConditionsRig();

describe("a node that flaps", () => {
  it("should get no new work until it has been steady, and always show its detected health", async () => {
    const agent = await newAgent("flapper");
    await flap(agent);
    await eventually(async () => expect(await holdsOf("flapper")).toEqual(["FLAPPING"]));
    for (const state of ["HEALTHY", "UNHEALTHY", "HEALTHY"] as const) {
      await change(agent, state);
      const { health, loss } = await recordOf(rig.store, "flapper");
      const reason = state === "HEALTHY" ? "HEARTBEAT_RECEIVED" : "HEARTBEATS_MISSED";
      expect(health).toMatchObject({ state, reason });
      if (state === "HEALTHY") expect(loss.reaction).toBeNull();
    }
    const types = ["node.health.changed", "node.flapping.started", "node.flapping.ended"] as const;
    const before = await told("flapper", types);
    expect(before.filter((it) => it === "flapping.started FLAPPING")).toHaveLength(1);
    // Count the changes so far: one from the join, four from the two outages that ended, one from the outage that did
    // not end, and the three from above.
    expect(before.filter((it) => it.startsWith("health.changed"))).toHaveLength(9);
    await age("flapper", 300_000);
    await keep("flapper");
    await rig.replica.caughtUp();
    expect(await holdsOf("flapper")).toEqual(["FLAPPING"]);
    await age("flapper", 301_000);
    await keep("flapper");
    await eventually(async () => expect(await holdsOf("flapper")).toEqual([]));
    expect((await told("flapper", types)).slice(before.length)).toEqual(["flapping.ended STEADY_AGAIN"]);
    expect((await recordOf(rig.store, "flapper")).history).toEqual({ outages: [], flappingSinceMs: null });
  });

  it("should not include a node whose agent announces each restart, however long the restart takes", async () => {
    const agent = await newAgent("restarted");
    for (const kind of [GoodbyeKind.STOPPING, GoodbyeKind.RESTARTING, GoodbyeKind.STOPPING, GoodbyeKind.RESTARTING]) {
      const stream = (await change(agent, "HEALTHY")) as Stream;
      stream.send({ case: "goodbye", value: { reason: "upgrade", kind } });
      await eventually(async () => {
        const { connection } = await recordOf(rig.store, "restarted");
        expect(connection.state).toBe("DISCONNECTED");
      });
      await change(agent, "UNHEALTHY");
    }
    expect((await recordOf(rig.store, "restarted")).history).toEqual({ outages: [], flappingSinceMs: null });
  });

  it("should be detected by replicas that each saw a part of the outages", async () => {
    const other = await rig.another();
    const agent = await newAgent("wanderer");
    for (const at of [rig.replica, other, rig.replica]) {
      await change(agent, "HEALTHY", at);
      await change(agent, "UNHEALTHY", at);
    }
    await eventually(async () => expect(await holdsOf("wanderer")).toEqual(["FLAPPING"]));
  });

  it("should be shown as flapping, without a hold, if its policy never holds it", async () => {
    const agent = await newAgent("free", { flappingHoldMs: 0 });
    await flap(agent);
    await change(agent, "HEALTHY");
    const { health, holds } = await recordOf(rig.store, "free");
    expect(health).toMatchObject({ state: "HEALTHY", reason: "HEARTBEAT_RECEIVED" });
    expect(holds).toEqual([]);
    expect(await told("free", ["node.flapping.started"])).toEqual(["flapping.started FLAPPING"]);
  });
});

describe("holds of several owners", () => {
  it("should each be lifted only by their own owner", async () => {
    const agent = await newAgent("held");
    const stream = await join(agent);
    await report("held", stream, info(8, 64));
    const cordon = { kind: "OPERATOR", sinceMs: 1, message: "mine", actor: "token:t" } as const;
    await rig.store.transaction((tx) => saveHolds(tx, "held", [cordon]));
    await report("held", stream, info(4, 64));
    await eventually(async () => expect(await holdsOf("held")).toEqual(["OPERATOR", "HARDWARE"]));
    await change(agent, "UNHEALTHY");
    await flap(agent);
    await eventually(async () => expect(await holdsOf("held")).toEqual(["OPERATOR", "HARDWARE", "FLAPPING"]));
    const back = (await change(agent, "HEALTHY")) as Stream;
    await report("held", back, info(8, 64));
    await eventually(async () => expect(await holdsOf("held")).toEqual(["OPERATOR", "FLAPPING"]));
    await age("held", 700_000);
    await keep("held");
    await eventually(async () => expect(await holdsOf("held")).toEqual(["OPERATOR"]));
    expect((await recordOf(rig.store, "held")).holds).toEqual([cordon]);
  });
});
