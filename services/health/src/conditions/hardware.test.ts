import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { eventually } from "@rollcall/testkit";
import {
  GPUS,
  holdsOf,
  info,
  join,
  keep,
  newAgent,
  report,
  rig,
  told,
  useConditionsRig,
} from "../testing/conditions-rig.ts";
import { eventsOf, recordOf } from "../testing/record.ts";

useConditionsRig();

const HARDWARE = ["node.hardware.degraded", "node.hardware.restored", "node.scheduling.changed"] as const;

describe("a node with less hardware than was approved", () => {
  it("should have a condition and a hold until the hardware is back", async () => {
    const stream = await join(await newAgent("lesser"));
    await report("lesser", stream, info(8, 64));
    await report("lesser", stream, info(4, 32, GPUS.slice(1)));
    await eventually(async () => expect(await holdsOf("lesser")).toEqual(["HARDWARE"]));
    expect((await recordOf(rig.store, "lesser")).health).toMatchObject({
      state: "HEALTHY",
      reason: "HARDWARE_DEGRADED",
      message: "4 of 8 cores, 32.0 of 64.0 GiB of memory, GPU 0 is gone (GPU-0)",
    });
    // The hardware is still degraded in the same way, so the report must not cause a new event.
    await report("lesser", stream, { ...info(4, 32, GPUS.slice(1)), hostname: "renamed" } as never);
    await report("lesser", stream, info(16, 64));
    await eventually(async () => expect(await holdsOf("lesser")).toEqual([]));
    expect(await told("lesser", HARDWARE)).toEqual([
      "hardware.degraded HARDWARE_DEGRADED",
      "scheduling.changed HARDWARE_IN_DOUBT",
      "hardware.restored HARDWARE_RESTORED",
      "scheduling.changed NO_HOLD",
    ]);
  });

  it("should be reported without a hold if its policy says so", async () => {
    const stream = await join(await newAgent("lenient", { hardwareHold: false }));
    await report("lenient", stream, info(8, 64));
    await report("lenient", stream, info(4, 64));
    await rig.replica.caughtUp();
    await keep("lenient");
    expect(await told("lenient", HARDWARE)).toEqual(["hardware.degraded HARDWARE_DEGRADED"]);
    expect(await holdsOf("lenient")).toEqual([]);
  });
});

describe("a GPU", () => {
  const usage = (...celsius: number[]) => ({
    gpus: celsius.map((temperatureCelsius, index) => ({ index, temperatureCelsius })),
  });

  it("should be too hot after three samples, and recover below the limit", async () => {
    const stream = await join(await newAgent("hot", { gpuMaxCelsius: 85 }));
    await report("hot", stream, info(8, 64));
    for (const celsius of [70, 90, 90]) await stream.beatAcknowledged(usage(60, celsius));
    await rig.replica.caughtUp();
    expect(await told("hot", HARDWARE)).toEqual([]);
    await stream.beatAcknowledged(usage(60, 91));
    await eventually(async () => expect(await holdsOf("hot")).toEqual(["HARDWARE"]));
    expect((await recordOf(rig.store, "hot")).health).toMatchObject({
      state: "HEALTHY",
      reason: "GPU_TOO_HOT",
      message: "GPU 1 is too hot at 91 °C, more than 85 °C",
    });
    for (let sample = 0; sample < 5; sample++) await stream.beatAcknowledged(usage(60, 82));
    for (let sample = 0; sample < 3; sample++) await stream.beatAcknowledged(usage(60, 80));
    await eventually(async () => expect(await holdsOf("hot")).toEqual([]));
    expect(await told("hot", HARDWARE)).toEqual([
      "hardware.degraded GPU_TOO_HOT",
      "scheduling.changed HARDWARE_IN_DOUBT",
      "hardware.restored HARDWARE_RESTORED",
      "scheduling.changed NO_HOLD",
    ]);
  });

  it("should be gone when samples lack it, also on the replica that adopts the node", async () => {
    const agent = await newAgent("gone");
    const stream = await join(agent);
    await report("gone", stream, info(8, 64));
    await stream.beatAcknowledged(usage(50, 50));
    for (let sample = 0; sample < 3; sample++) await stream.beatAcknowledged(usage(50));
    await eventually(async () => expect(await holdsOf("gone")).toEqual(["HARDWARE"]));
    const other = await rig.another();
    const moved = await join(agent, other);
    for (let sample = 0; sample < 4; sample++) await moved.beatAcknowledged(usage(50));
    await keep("gone", other);
    const taken = other.app.replica.nodes.find("gone");
    await eventually(() => expect(taken?.gpuKnowledge.isSeeded).toBe(true));
    await other.caughtUp();
    expect(await told("gone", HARDWARE)).toEqual([
      "hardware.degraded GPU_GONE",
      "scheduling.changed HARDWARE_IN_DOUBT",
    ]);
    for (let sample = 0; sample < 3; sample++) await moved.beatAcknowledged(usage(50, 50));
    await eventually(async () => expect(await holdsOf("gone")).toEqual([]));
  });
});

describe("a reboot", () => {
  it("should be reported without a goodbye, and hold the node only if its policy says so", async () => {
    for (const [nodeId, override, holds] of [
      ["rebooted", {}, []],
      ["rebooted-held", { rebootHoldMs: 60_000 }, ["HARDWARE"]],
    ] as const) {
      const agent = await newAgent(nodeId, override);
      const before = await join(agent);
      before.breakConnection();
      await eventually(async () => expect((await recordOf(rig.store, nodeId)).connection.state).toBe("DISCONNECTED"));
      const bootId = randomUUID();
      await join(agent, rig.replica, { bootId });
      await eventually(async () => {
        const { health } = await recordOf(rig.store, nodeId);
        expect(health).toMatchObject({ state: "HEALTHY", reason: "UNEXPECTED_REBOOT" });
        expect(await holdsOf(nodeId)).toEqual(holds);
      });
      expect(await eventsOf(rig.store, nodeId, ["node.rebooted"])).toMatchObject([
        { before: { bootId: agent.bootId }, after: { bootId } },
      ]);
    }
  });

  it("should be reported some time after a connected session was taken over, if no earlier boot has come back", async () => {
    const agent = await newAgent("crashed");
    await join(agent);
    const bootId = randomUUID();
    await join(agent, rig.replica, { bootId });
    const { suspectedReboot } = await recordOf(rig.store, "crashed");
    expect(suspectedReboot).toMatchObject({ before: agent.bootId, after: bootId });
    await keep("crashed");
    expect(await eventsOf(rig.store, "crashed", ["node.rebooted"])).toEqual([]);
    const earlier = JSON.stringify({ ...suspectedReboot, atMs: 0 });
    const { db } = rig.store;
    await db.updateTable("node_sessions").set({ reboot_suspected: earlier }).where("node_id", "=", "crashed").execute();
    await keep("crashed");
    await eventually(async () => {
      expect(await eventsOf(rig.store, "crashed", ["node.rebooted"])).toMatchObject([
        { before: { bootId: agent.bootId }, after: { bootId } },
      ]);
    });
    expect(await recordOf(rig.store, "crashed")).toMatchObject({
      suspectedReboot: null,
      health: { reason: "UNEXPECTED_REBOOT" },
    });
  });

  it("should be none after a goodbye, on the same boot, or on another machine", async () => {
    const agent = await newAgent("orderly");
    const stream = await join(agent);
    stream.send({ case: "goodbye", value: { reason: "maintenance" } });
    await eventually(async () => {
      const { connection } = await recordOf(rig.store, "orderly");
      expect(connection.reason).toBe("AGENT_SHUTDOWN");
    });
    const bootId = randomUUID();
    await join(agent, rig.replica, { bootId });
    await join(agent, rig.replica, { bootId });
    await join(agent, rig.replica, { bootId: randomUUID(), machineFingerprint: "another" });
    expect(await eventsOf(rig.store, "orderly", ["node.rebooted"])).toEqual([]);
  });
});
