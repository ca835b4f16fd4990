import { afterEach, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
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

describe("createAgent(): losing a connection", () => {
  it("should open a new connection after 20 s without Acks", async () => {
    const { clock, plane, agent } = await start();
    plane.latest.acking = false;
    await clock.pass(19_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(1);
    expect(plane.attempts).toHaveLength(2);
    expect(plane.streams[0]?.isOpen).toBe(false);
    expect(agent.status()).toMatchObject({ phase: "connected", sessionEpoch: 2n });
  });

  it("should never wait longer than a third of the time to UNHEALTHY", async () => {
    const plane = new FakeControlPlane();
    plane.settings = {
      heartbeatInterval: toDuration(4_000),
      unhealthyAfter: toDuration(12_000),
    };
    const { clock } = await start({ plane });
    await clock.pass(1_000);
    plane.latest.acking = false;
    await clock.pass(6_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(1);
    expect(plane.attempts).toHaveLength(2);
  });

  it("should not take a stretched interval for silence", async () => {
    const plane = new FakeControlPlane();
    plane.settings = {
      heartbeatInterval: toDuration(60_000),
      unhealthyAfter: toDuration(180_000),
    };
    const { clock } = await start({ plane });
    await clock.pass(240_000);
    expect(plane.attempts).toHaveLength(1);
    plane.latest.acking = false;
    await clock.pass(64_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(1);
    expect(plane.attempts).toHaveLength(2);
  });

  it("should give up a connection attempt after 5 s, and try the next endpoint", async () => {
    const { clock, plane, agent } = await startRegistered((it) => {
      it.endpoints = ["10.0.0.1:7701", "10.0.0.2:7701"];
      it.paths.set("10.0.0.1:7701", "black-hole");
    });
    await clock.pass(4_999);
    expect(plane.attempts).toEqual(["10.0.0.1:7701"]);
    await clock.pass(1);
    expect(plane.attempts).toEqual(["10.0.0.1:7701", "10.0.0.2:7701"]);
    expect(agent.status().endpoint).toBe("10.0.0.2:7701");
  });

  it("should back off with full jitter while no server answers", async () => {
    const { clock, plane } = await start({ random: () => 0.999 });
    plane.registryError = new Error("away");
    plane.paths.set("10.0.0.1:7701", "refused");
    plane.latest.end();
    const at: number[] = [];
    for (let second = 0; second < 100; second += 1) {
      const before = plane.attempts.length;
      await clock.pass(1_000);
      if (plane.attempts.length > before) at.push(second + 1);
    }
    // The delays are about 1, 2, 4, 8 and 16 s, then 20 s each, because backoff never exceeds a third of the
    // time to UNHEALTHY.
    expect(at).toEqual([1, 3, 7, 15, 31, 51, 71, 91]);
  });

  it("should register again if no initial endpoint can be reached, and use the new endpoints", async () => {
    const { clock, plane, agent } = await startRegistered((it) => it.paths.set("10.0.0.1:7701", "refused"), {
      random: () => 0.5,
    });
    plane.endpoints = ["10.0.0.9:7701"];
    await clock.pass(60_000);
    // All attempts before the last one used the old endpoint, the only one that the first registration
    // returned.
    expect(new Set(plane.attempts.slice(0, -1))).toEqual(new Set(["10.0.0.1:7701"]));
    expect(plane.attempts.at(-1)).toBe("10.0.0.9:7701");
    expect(plane.registrations).toHaveLength(2);
    expect(agent.status().phase).toBe("connected");
    expect(harness.sentinel?.healthEndpoints).toEqual(["10.0.0.9:7701"]);
  });

  it("should keep trying the known endpoints while the registry is unreachable too", async () => {
    const { clock, plane, agent } = await startRegistered((it) => {
      it.paths.set("10.0.0.1:7701", "black-hole");
      it.registryError = new Error("away");
    });
    await clock.pass(40_000);
    expect(plane.registrations.length).toBeGreaterThan(0);
    plane.paths.delete("10.0.0.1:7701");
    await clock.pass(5_000);
    expect(agent.status().phase).toBe("connected");
  });

  it("should reconnect after the server's delay, and no sooner", async () => {
    const { clock, plane } = await start();
    plane.latest.goAway({
      reason: ErrorReason.SERVER_SHUTTING_DOWN,
      action: GoAwayAction.RECONNECT,
      retryAfter: toDuration(7_000),
    });
    await clock.pass(6_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(1);
    expect(plane.attempts).toHaveLength(2);
  });

  it("should obey the refusal of a Hello", async () => {
    const plane = new FakeControlPlane();
    plane.refusal = { reason: ErrorReason.OVERLOADED, retryAfter: toDuration(30_000) };
    const { clock } = await start({ plane });
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(29_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(1);
    expect(plane.attempts).toHaveLength(2);
  });

  it("should wait at least 30 s after another process took its identity", async () => {
    const { clock, plane } = await start();
    plane.latest.goAway({ reason: ErrorReason.SESSION_SUPERSEDED });
    await clock.pass(29_999);
    expect(plane.attempts).toHaveLength(1);
    await clock.pass(1);
    expect(plane.attempts).toHaveLength(2);
  });

  it("should give up an unanswered Hello", async () => {
    const plane = new FakeControlPlane();
    plane.ignoresHello = true;
    const { clock } = await start({ plane });
    await clock.pass(20_000);
    expect(plane.attempts).toHaveLength(2);
  });
});
