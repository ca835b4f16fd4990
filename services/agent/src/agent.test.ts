import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "@jest/globals";
import { WelcomeSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { GreetingSchema } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import { silentLogger, systemClock } from "@rollcall/process";
import { settle } from "@rollcall/testkit/time";
import { toDuration } from "./stream/hello.ts";
import { type AgentHarness, createHarness, type HarnessOptions } from "./testing/agent-harness.ts";
import { FakeControlPlane } from "./testing/fake-control-plane.ts";
import { beatsOf, kindsOf, startAgent, startKnown } from "./testing/running-agent.ts";
import { AgentWork } from "./work/agent-work.ts";

/** The work of a machine that runs nothing. */
const WORK = { keeper: null, nodeId: "node-1", clock: systemClock, random: () => 0.5, log: silentLogger };

const WHOLE_MACHINE = { cpu: { share: 1 }, memory: { share: 1 }, disk: { share: 1 } };

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

describe("createAgent(): joining", () => {
  it("should register, connect, prove its key and beat immediately", async () => {
    const { agent, plane, sentinel } = await start();
    expect(plane.registrations).toHaveLength(1);
    expect(plane.registrations[0]?.info.labels).toEqual({ zone: "a" });
    expect(kindsOf(harness)).toEqual(["hello", "beat"]);
    expect(agent.status()).toEqual({
      phase: "connected",
      nodeId: "node-1",
      endpoint: "10.0.0.1:7701",
      sessionEpoch: 1n,
      membership: "APPROVED",
      ungrantedWishes: [],
    });
    expect(sentinel).toEqual({
      nodeId: "node-1",
      keyFingerprint: keyFingerprint(harness.keyPair.publicKey),
      clusterId: "cluster-1",
      healthEndpoints: ["10.0.0.1:7701"],
    });
  });

  it("should skip registration with a sentinel", async () => {
    const { plane, agent } = await startRegistered();
    expect(plane.registrations).toEqual([]);
    expect(agent.status().phase).toBe("connected");
  });

  it.each([
    ["another node's", { nodeId: "node-2" }],
    ["another key's", { keyFingerprint: "SHA256:other" }],
  ])("should register despite %s sentinel", async (_, change) => {
    const keyPair = generateKeyPair();
    const { plane } = await start({
      keyPair,
      sentinel: {
        nodeId: "node-1",
        keyFingerprint: keyFingerprint(keyPair.publicKey),
        clusterId: "cluster-1",
        healthEndpoints: ["10.0.0.1:7701"],
        ...change,
      },
    });
    expect(plane.registrations).toHaveLength(1);
  });

  it("should send its requested interval and its digest, and its report only if the server lacks it", async () => {
    const plane = new FakeControlPlane();
    plane.welcome = { nodeInfoWanted: true };
    const { agent, logged } = await start({
      plane,
      wishedHeartbeatMs: 5_500,
      wishedInfoMs: 60_000,
    });
    expect(kindsOf(harness)).toEqual(["hello", "beat", "nodeInfo"]);
    const [hello] = plane.latest.received;
    expect(hello?.value).toMatchObject({
      bootId: "boot-1",
      machineFingerprint: "machine-1",
      wishedHeartbeatInterval: { seconds: 5n, nanos: 500_000_000 },
      wishedInfoInterval: { seconds: 60n, nanos: 0 },
    });
    const wish = { key: "Compute.Heartbeat.Interval", wishedMs: 5_500, toldMs: 15_000 };
    expect(agent.status().ungrantedWishes).toEqual([wish]);
    expect(logged.filter(({ message }) => message.startsWith("configured interval"))).toMatchObject([
      { level: "warn", fields: { configured_ms: 5_500, in_force_ms: 15_000 } },
    ]);
    expect(hello?.case === "hello" && hello.value.nodeInfoDigest).toHaveLength(32);
  });

  it("should keep trying while the registry is unreachable", async () => {
    const plane = new FakeControlPlane();
    plane.registryError = new Error("connection refused");
    const { clock, agent } = await start({ plane, random: () => 0.5 });
    await clock.pass(120_000);
    // Backoff never exceeds a third of the time to UNHEALTHY, and this test's jitter halves the backoff.
    expect(plane.registrations.length).toBeGreaterThan(10);
    expect(agent.status().phase).toBe("waiting");
    plane.registryError = undefined;
    await clock.pass(20_000);
    expect(agent.status().phase).toBe("connected");
    const warnings = harness.logged.filter((line) => line.level === "warn");
    expect(warnings.map((line) => line.message)).toEqual(["connection failed"]);
  });

  it("should log that it waits for approval, and receive the approval immediately", async () => {
    const plane = new FakeControlPlane();
    plane.membership = MembershipState.PENDING;
    const { agent, logged } = await start({ plane });
    expect(agent.status().membership).toBe("PENDING");
    expect(logged.map((line) => line.message)).toContain("waiting for an operator's approval");
    plane.latest.send({ case: "membership", value: { state: MembershipState.APPROVED } as never });
    await settle();
    expect(agent.status().membership).toBe("APPROVED");
  });

  it("should send a Hello and beat while the machine is still being read, and report afterwards", async () => {
    let finish = (): void => {};
    const known = await startKnown();
    await known.kill();
    const { plane, keyPair, sentinel } = known;
    plane.welcome = { nodeInfoWanted: true };
    harness = createHarness({ plane, keyPair, ...(sentinel && { sentinel }) });
    const { facts } = harness;
    Object.defineProperty(harness, "facts", {
      get: () => new Promise((resolve) => (finish = () => resolve(facts))),
    });
    harness.start();
    await harness.clock.pass(1_999);
    expect(kindsOf(harness)).toEqual([]);
    await harness.clock.pass(15_001);
    expect(kindsOf(harness)).toEqual(["hello", "beat", "beat"]);
    finish();
    await settle();
    expect(kindsOf(harness).at(-1)).toBe("nodeInfo");
  });

  it("should not depend on clocks: a day's difference only causes a warning", async () => {
    const plane = new FakeControlPlane();
    plane.welcome = { serverTime: { seconds: 1_700_000_000n, nanos: 0 } };
    harness = createHarness({ plane });
    harness.clock.jumpWall(-86_400_000);
    harness.start();
    await harness.clock.pass(60_000);
    harness.clock.jumpWall(2 * 86_400_000);
    await harness.clock.pass(60_000);
    expect(plane.attempts).toHaveLength(1);
    expect(beatsOf(harness)).toHaveLength(9);
    const skew = harness.logged.find((line) => line.message.includes("clock"));
    expect(skew?.fields.skew_ms).toBe(-86_400_000);
  });
});

describe("createAgent(): beating", () => {
  it("should beat at the server's interval with increasing sequence, without totals sent before", async () => {
    const { clock, plane } = await start();
    await clock.pass(45_000);
    expect(beatsOf(harness).map((beat) => beat.sequence)).toEqual([1, 2, 3, 4]);
    expect(beatsOf(harness).map((beat) => beat.usage?.memoryTotalMib)).toEqual([16_384, 0, 0, 0]);
    expect(beatsOf(harness)[3]?.usage).toMatchObject({ cpuPercent: 12.3, memoryUsedMib: 4_096 });
    expect(plane.attempts).toHaveLength(1);
  });

  it("should send totals again when they change, and all of them on a new stream", async () => {
    const { clock, plane } = await start();
    harness.usage = { ...harness.usage, memory: { usedBytes: 0, totalBytes: 2 ** 30 } };
    await clock.pass(15_000);
    expect(beatsOf(harness)[1]?.usage).toMatchObject({ memoryTotalMib: 1024, diskTotalMib: 0 });
    plane.latest.end();
    await clock.pass(0);
    expect(beatsOf(harness)[0]?.usage).toMatchObject({
      memoryTotalMib: 1024,
      diskTotalMib: 102_400,
    });
  });

  it("should measure shortly before each beat, never waiting for it", async () => {
    const { clock } = await start();
    const before = harness.measurements;
    await clock.pass(13_900);
    expect(harness.measurements).toBe(before);
    await clock.pass(200);
    expect(harness.measurements).toBe(before + 1);
  });

  it("should apply a new interval immediately, counted from the last beat", async () => {
    const { clock, plane } = await start();
    await clock.pass(5_000);
    plane.latest.send({
      case: "settings",
      value: { heartbeatInterval: toDuration(2_000) } as never,
    });
    await settle();
    expect(beatsOf(harness)).toHaveLength(2);
    await clock.pass(4_000);
    expect(beatsOf(harness)).toHaveLength(4);
    plane.latest.send({ case: "ack", value: { sequence: 4, nextIntervalMs: 10_000 } as never });
    await clock.pass(9_999);
    expect(beatsOf(harness)).toHaveLength(4);
    await clock.pass(1);
    expect(beatsOf(harness)).toHaveLength(5);
  });

  it("should confirm new settings once, with the next beat", async () => {
    const plane = new FakeControlPlane();
    plane.settings = { ...plane.settings, generation: 1 };
    const { clock } = await start({ plane });
    const told = () => beatsOf(harness).map(({ settingsGeneration }) => settingsGeneration);
    await clock.pass(15_000);
    expect(told()).toEqual([1, 0]);
    plane.latest.send({ case: "settings", value: { ...plane.settings, generation: 2 } as never });
    await clock.pass(30_000);
    expect(told()).toEqual([1, 0, 2, 0]);
  });

  it("should report its description at the interval, and sooner if it has changed", async () => {
    const plane = new FakeControlPlane();
    plane.settings = { ...plane.settings, infoInterval: toDuration(300_000) };
    const { clock } = await start({ plane });
    const reports = () => kindsOf(harness).filter((kind) => kind === "nodeInfo").length;
    await clock.pass(119_999);
    expect(reports()).toBe(0);
    harness.facts = { ...harness.facts, memoryBytes: 1 };
    await clock.pass(1);
    expect(reports()).toBe(1);
    await clock.pass(299_999);
    expect(reports()).toBe(1);
    await clock.pass(1);
    expect(reports()).toBe(2);
  });
});

describe("createAgent(): what the machine offers", () => {
  const NONE = { version: "", settingsDigest: "" };
  /** Access to a keeper that never responds; the tests call onGreeting() instead. */
  const AWAY = { socketPath: "/nowhere/keeper.sock", start: null, isNeeded: true, expected: NONE };
  const UNKNOWN = { reason: "EXECUTORS_UNKNOWN" };
  let work: AgentWork;

  /** Start an agent, and let its wait for the keeper time out. */
  async function startWithoutKeeper(plane: FakeControlPlane): Promise<AgentHarness> {
    const make = (onOffer: () => void) => {
      work = new AgentWork({ ...WORK, keeper: AWAY, onOffer });
      return work;
    };
    const given = { allocated: WHOLE_MACHINE, ports: { min: 20_000, max: 32_000 } };
    const started = await start({ plane, work: { make, ...given }, random: () => 0.5 });
    await started.clock.pass(2_000);
    return started;
  }
  const greet = (...executors: string[]) => work.onGreeting(create(GreetingSchema, { executors }));
  const reports = () =>
    harness.plane.latest.received.flatMap((frame) => (frame?.case === "nodeInfo" ? [frame.value] : []));

  it.each([
    ["the stream is being opened", true],
    ["the stream is open", false],
  ])("should be reported immediately while %s", async (_, ignoresHello) => {
    const plane = new FakeControlPlane();
    plane.ignoresHello = ignoresHello;
    const { clock } = await startWithoutKeeper(plane);
    greet("process");
    if (ignoresHello) {
      const settings = { ...plane.settings, infoInterval: toDuration(300_000) };
      plane.latest.send({ case: "welcome", value: create(WelcomeSchema, { sessionEpoch: 1n, settings }) });
    }
    await clock.pass(1);
    expect(reports().at(-1)).toMatchObject({ work: { executors: ["process"] }, conditions: [] });
  });

  it("should be current when the agent connects, whatever was known at its start", async () => {
    const plane = new FakeControlPlane();
    plane.registryError = new Error("connection refused");
    const { clock } = await startWithoutKeeper(plane);
    expect(plane.registrations.at(-1)?.info).toMatchObject({ conditions: [UNKNOWN] });
    expect(plane.registrations.at(-1)?.info.work).toBeUndefined();
    greet("process");
    plane.registryError = undefined;
    plane.welcome = { nodeInfoWanted: true };
    await clock.pass(20_000);
    expect(plane.registrations.at(-1)?.info).toMatchObject({ work: { executors: ["process"] }, conditions: [] });
    expect(reports()[0]).toMatchObject({ work: { executors: ["process"] }, conditions: [] });
  });

  it("should not be described before the keeper had time to answer", async () => {
    const plane = new FakeControlPlane();
    const make = (onOffer: () => void) => {
      work = new AgentWork({ ...WORK, keeper: AWAY, onOffer });
      return work;
    };
    const given = { allocated: WHOLE_MACHINE, ports: { min: 20_000, max: 32_000 } };
    await start({ plane, work: { make, ...given } });
    expect(plane.registrations).toEqual([]);
    greet("docker");
    await settle();
    expect(plane.registrations[0]?.info).toMatchObject({ work: { executors: ["docker"] }, conditions: [] });
  });

  it("should have no condition on a machine without need for a keeper", async () => {
    const plane = new FakeControlPlane();
    const make = (onOffer: () => void) => new AgentWork({ ...WORK, onOffer });
    await start({ plane, work: { make, allocated: WHOLE_MACHINE, ports: { min: 0, max: 0 } } });
    expect(plane.registrations[0]?.info.conditions).toEqual([]);
  });
});

describe("createAgent(): ending", () => {
  it("should send a goodbye last, wait until it is acknowledged, and not reconnect", async () => {
    const { plane, clock, agent } = await start();
    await agent.close("the agent was stopped");
    await harness.ended();
    expect(plane.latest.received.at(-1)).toMatchObject({
      case: "goodbye",
      value: { reason: "the agent was stopped" },
    });
    expect(plane.latest.isFinished).toBe(true);
    await clock.pass(600_000);
    expect(plane.attempts).toHaveLength(1);
    expect(agent.status().phase).toBe("closed");
  });

  it("should wait at most 5 s for the acknowledgement", async () => {
    const { plane, clock, agent } = await start();
    const { latest } = plane;
    latest.end = () => {};
    let closed = false;
    const closing = agent.close("stop").then(() => {
      closed = true;
    });
    await clock.pass(4_999);
    expect(closed).toBe(false);
    await clock.pass(1);
    await closing;
    expect(latest.isOpen).toBe(false);
  });

  it.each([
    ["registering", { registryError: new Error("away") }],
    ["connecting", { paths: new Map([["10.0.0.1:7701", "black-hole"]]) }],
    ["greeting", { ignoresHello: true }],
  ])("should end immediately while %s", async (_, trouble) => {
    const plane = Object.assign(new FakeControlPlane(), trouble);
    const { agent } = await start({ plane, random: () => 0.5 });
    await agent.close("stop");
    await harness.ended();
    expect(agent.status().phase).toBe("closed");
    expect(plane.streams.filter(({ isOpen }) => isOpen)).toEqual([]);
  });

  it("should close without a goodbye if its task is aborted", async () => {
    const { plane } = await start();
    await harness.kill();
    expect(plane.latest.isOpen).toBe(false);
    expect(kindsOf(harness)).not.toContain("goodbye");
  });

  it("should continue after a restart with its remembered state", async () => {
    const { plane, keyPair, agent, sentinel } = await start();
    await agent.close("stop");
    await start({ plane, keyPair, ...(sentinel && { sentinel }) });
    expect(plane.registrations).toHaveLength(1);
    expect(harness.agent.status()).toMatchObject({ phase: "connected", sessionEpoch: 2n });
  });
});
