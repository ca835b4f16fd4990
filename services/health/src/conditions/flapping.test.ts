import { describe, expect, it } from "@jest/globals";
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
  it("should be shown UNHEALTHY, held, and told of once, until it has been steady", async () => {
    const agent = await newAgent("flapper");
    await flap(agent);
    await eventually(async () => expect(await holdsOf("flapper")).toEqual(["FLAPPING"]));
    // It continues: the record follows, and the log has no further event.
    await change(agent, "HEALTHY");
    await change(agent, "UNHEALTHY");
    await change(agent, "HEALTHY");
    expect((await recordOf(rig.store, "flapper")).health).toMatchObject({
      state: "UNHEALTHY",
      reason: "FLAPPING",
    });
    const types = ["node.health.changed", "node.flapping.started", "node.flapping.ended"] as const;
    const before = await told("flapper", types);
    expect(before.slice(-2)).toEqual(["flapping.started FLAPPING", "health.changed FLAPPING"]);
    expect(before).toHaveLength(7);
    await age("flapper", 300_000);
    await keep("flapper");
    await rig.replica.caughtUp();
    expect(await holdsOf("flapper")).toEqual(["FLAPPING"]);
    await age("flapper", 301_000);
    await keep("flapper");
    await eventually(async () => expect(await holdsOf("flapper")).toEqual([]));
    expect((await told("flapper", types)).slice(before.length)).toEqual([
      "flapping.ended STEADY_AGAIN",
      "health.changed HEARTBEAT_RECEIVED",
    ]);
    const { health, history } = await recordOf(rig.store, "flapper");
    expect(health).toMatchObject({ state: "HEALTHY", reason: "HEARTBEAT_RECEIVED" });
    expect(history).toEqual({ changes: [], flappingSinceMs: null });
  });

  it("should be found by replicas that each saw a part of it", async () => {
    const other = await rig.another();
    const agent = await newAgent("wanderer");
    for (const at of [rig.replica, other, rig.replica]) {
      await change(agent, "HEALTHY", at);
      await change(agent, "UNHEALTHY", at);
    }
    await eventually(async () => expect(await holdsOf("wanderer")).toEqual(["FLAPPING"]));
  });

  it("should be shown as it is, and not be held, where its policy never holds it", async () => {
    const agent = await newAgent("free", { flappingHoldMs: 0 });
    await flap(agent);
    await change(agent, "HEALTHY");
    const { health, holds } = await recordOf(rig.store, "free");
    expect(health).toMatchObject({ state: "HEALTHY", reason: "FLAPPING" });
    expect(holds).toEqual([]);
  });
});

describe("holds of several owners", () => {
  it("should each go by its own owner alone", async () => {
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
