import { afterEach, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { refuse } from "@rollcall/errors";
import { settle } from "@rollcall/testkit/time";
import { toDuration } from "./stream/hello.ts";
import type { AgentHarness, HarnessOptions } from "./testing/agent-harness.ts";
import { FakeControlPlane } from "./testing/fake-control-plane.ts";
import { startAgent, startKnown } from "./testing/running-agent.ts";

let harness: AgentHarness;
afterEach(() => harness.kill());

async function start(options: HarnessOptions = {}): Promise<AgentHarness> {
  harness = await startAgent(options);
  return harness;
}

async function startRegistered(...args: Parameters<typeof startKnown>): Promise<AgentHarness> {
  harness = await startKnown(...args);
  return harness;
}

describe("createAgent(): decisions of operators", () => {
  it("should register again when the server does not know it", async () => {
    const { plane, agent } = await startRegistered((it) => it.forget("node-1"));
    await harness.clock.pass(0);
    expect(plane.registrations).toHaveLength(1);
    expect(agent.status().phase).toBe("connected");
  });

  it("should register again when asked to", async () => {
    const { plane, clock } = await start();
    plane.latest.goAway({ reason: ErrorReason.INTERNAL, action: GoAwayAction.REGISTER });
    await clock.pass(0);
    expect(plane.registrations).toHaveLength(2);
  });

  it.each([
    ["NODE_DELETED", { reason: ErrorReason.NODE_DELETED, action: GoAwayAction.RECONNECT }],
    ["STOP", { action: GoAwayAction.STOP }],
  ])("should remove the sentinel and stay idle after %s", async (_, goAway) => {
    const { plane, clock, agent, logged } = await start();
    plane.latest.goAway(goAway);
    await clock.pass(86_400_000);
    expect(agent.status().phase).toBe("idle");
    expect(harness.sentinel).toBeUndefined();
    expect(plane.attempts).toHaveLength(1);
    expect(plane.registrations).toHaveLength(1);
    expect(logged.filter((line) => line.level === "error")).toHaveLength(1);
    expect(clock.sleepers).toBe(1);
    await agent.close("stop");
    await harness.ended();
  });

  it("should reconnect within 20 s of an approval that soon follows a rejection, without a delay from the server", async () => {
    const { plane, clock, agent } = await start({ random: () => 0.5 });
    plane.refusal = { reason: ErrorReason.NODE_REJECTED, message: "node has been rejected: no" };
    plane.latest.goAway(plane.refusal);
    await clock.pass(9_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(10_001);
    expect(plane.attempts).toHaveLength(2);
    plane.refusal = undefined;
    await clock.pass(20_000);
    expect(agent.status().phase).toBe("connected");
    expect(plane.registrations).toHaveLength(1);
  });

  it("should retry less and less often while it is rejected, and quickly again after the next rejection", async () => {
    const { plane, clock, agent } = await start({ random: () => 0.5 });
    plane.refusal = { reason: ErrorReason.NODE_REJECTED };
    const attemptsIn = async (ms: number) => {
      const before = plane.attempts.length;
      for (let passedMs = 0; passedMs < ms; passedMs += 20_000) await clock.pass(20_000);
      return plane.attempts.length - before;
    };
    plane.latest.goAway(plane.refusal);
    expect(await attemptsIn(600_000)).toBeGreaterThanOrEqual(30);
    await attemptsIn(7_200_000);
    const late = await attemptsIn(600_000);
    expect(late).toBeGreaterThanOrEqual(5);
    expect(late).toBeLessThanOrEqual(10);
    plane.refusal = undefined;
    await clock.pass(120_000);
    await clock.pass(1_000);
    expect(agent.status().phase).toBe("connected");
    plane.refusal = { reason: ErrorReason.NODE_REJECTED };
    plane.latest.goAway(plane.refusal);
    expect(await attemptsIn(60_000)).toBeGreaterThanOrEqual(3);
  });

  it("should retry sooner if the server says so", async () => {
    const { plane, clock } = await start();
    plane.latest.goAway({ reason: ErrorReason.NODE_REJECTED, retryAfter: toDuration(10_000) });
    await clock.pass(10_000);
    expect(plane.attempts).toHaveLength(2);
  });

  it("should retry within 20 s if its registration is refused because of a rejection", async () => {
    const plane = new FakeControlPlane();
    plane.registryError = refuse("NODE_REJECTED", "node has been rejected: no");
    const { clock, logged } = await start({ plane });
    await clock.pass(9_999);
    expect(plane.registrations).toHaveLength(1);
    await clock.pass(1);
    expect(plane.registrations).toHaveLength(2);
    expect(logged.find((line) => line.level === "warn")?.fields).toMatchObject({
      reason: "NODE_REJECTED",
      detail: "node has been rejected: no",
      retry_in_ms: 10_000,
    });
  });
});

describe("createAgent(): moving", () => {
  const move = { action: GoAwayAction.MOVE, reason: ErrorReason.SERVER_SHUTTING_DOWN };

  it("should close the old stream only after the new one's Welcome", async () => {
    const { plane, clock, agent } = await startRegistered((it) => {
      it.endpoints = ["10.0.0.1:7701", "10.0.0.2:7701"];
    });
    plane.ignoresHello = true;
    const [old] = plane.streams;
    old?.goAway(move);
    await clock.pass(15_000);
    expect(plane.attempts).toEqual(["10.0.0.1:7701", "10.0.0.2:7701"]);
    expect(old?.isOpen).toBe(true);
    expect(old?.received.filter((frame) => frame?.case === "beat")).toHaveLength(2);
    expect(agent.status().endpoint).toBe("10.0.0.1:7701");
    plane.ignoresHello = false;
    await clock.pass(20_000);
    expect(agent.status()).toMatchObject({ phase: "connected", endpoint: "10.0.0.2:7701" });
    expect(old?.isOpen).toBe(false);
    expect(old?.received.map((frame) => frame?.case)).not.toContain("goodbye");
  });

  it("should move to the server's endpoints, and elsewhere only if that fails", async () => {
    const { plane, clock, agent } = await startRegistered((it) => {
      it.endpoints = ["10.0.0.1:7701", "10.0.0.2:7701"];
    });
    plane.latest.goAway({ ...move, endpoints: ["10.0.0.9:7701"] });
    await clock.pass(5_000);
    expect(plane.attempts).toEqual(["10.0.0.1:7701", "10.0.0.9:7701"]);
    expect(agent.status()).toMatchObject({ phase: "connected", endpoint: "10.0.0.9:7701" });
  });

  it("should move to the same address if no other is known", async () => {
    const { plane, clock, agent } = await start();
    plane.latest.goAway({ ...move, retryAfter: toDuration(3_000) });
    await clock.pass(2_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(1);
    expect(agent.status().sessionEpoch).toBe(2n);
    expect(plane.streams.map((stream) => stream.isOpen)).toEqual([false, true]);
  });

  it("should stay at its replica while the other endpoint cannot be reached", async () => {
    const { plane, clock, agent } = await startRegistered((it) => {
      it.endpoints = ["10.0.0.1:7701", "10.0.0.2:7701"];
      it.paths.set("10.0.0.2:7701", "black-hole");
    });
    plane.latest.goAway(move);
    await clock.pass(60_000);
    expect(agent.status()).toMatchObject({ phase: "connected", endpoint: "10.0.0.1:7701" });
    expect(plane.streams[0]?.isOpen).toBe(true);
    plane.paths.delete("10.0.0.2:7701");
    await clock.pass(30_000);
    expect(agent.status().endpoint).toBe("10.0.0.2:7701");
  });

  it("should not mistake its own move for another process with its identity", async () => {
    const { plane, clock, agent } = await start();
    plane.ignoresHello = true;
    const [old] = plane.streams;
    old?.goAway(move);
    await clock.pass(1_000);
    // The Hello for the move took over the session, but the Welcome was lost.
    old?.goAway({ reason: ErrorReason.SESSION_SUPERSEDED });
    await clock.pass(10_000);
    plane.ignoresHello = false;
    await clock.pass(10_000);
    expect(agent.status().phase).toBe("connected");
    expect(plane.streams.map((stream) => stream.isOpen)).toEqual([false, false, true]);
  });

  it("should reconnect normally if the old stream ends before the move", async () => {
    const { plane, clock, agent } = await start();
    plane.latest.goAway({ ...move, retryAfter: toDuration(60_000) });
    await settle();
    plane.latest.end();
    await clock.pass(1_000);
    expect(agent.status()).toMatchObject({ phase: "connected", sessionEpoch: 2n });
  });

  it("should send its goodbye on the current stream if it is closed during a move", async () => {
    const { plane, clock, agent } = await startRegistered((it) => {
      it.endpoints = ["10.0.0.1:7701", "10.0.0.2:7701"];
      it.paths.set("10.0.0.2:7701", "black-hole");
    });
    const [old] = plane.streams;
    old?.goAway(move);
    await clock.pass(1_000);
    await agent.close("stop");
    await harness.ended();
    expect(old?.received.at(-1)).toMatchObject({ case: "goodbye" });
  });
});
