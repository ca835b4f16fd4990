import { describe, expect, it } from "@jest/globals";
import { DEFAULT_HEALTH_POLICY, type Health, NO_WISHES } from "@rollcall/domain";
import { ManualClock } from "@rollcall/testkit/time";
import type { HeldNode, NodeStream } from "./held-node.ts";
import { Replica } from "./replica.ts";

const DOUBT_MS = 30_000;
const { unhealthyAfterMs } = DEFAULT_HEALTH_POLICY;

const state = <S extends string>(it: S) => ({
  state: it,
  sinceMs: 0,
  reason: "RECORDED",
  message: "",
  actor: "system",
});
const HEALTHY: Health = state("HEALTHY");

function createStream(): NodeStream {
  return {
    peer: "127.0.0.1:1",
    sendMembership: () => {},
    sendSettings: () => {},
    sendPace: () => {},
    askMove: () => false,
    leave: () => {},
  };
}

/** A replica with so many nodes, all of which beat at time 0. */
function setUp(count: number) {
  const clock = new ManualClock();
  const nothing = () => {};
  const replica = new Replica({
    instance: "me",
    clock,
    policy: DEFAULT_HEALTH_POLICY,
    heartbeatsPerSecond: 1_000,
    tickMs: 100,
    doubtMs: DOUBT_MS,
    random: () => 0,
    metrics: {
      hello: nothing,
      movesAsked: nothing,
      transition: nothing,
      detectionDelay: nothing,
      loopLag: nothing,
      observationLost: nothing,
      deadlineExtended: nothing,
      returnedAtOnce: nothing,
    },
    onChanged: nothing,
    onLabelsChanged: nothing,
  });
  replica.leaseHeld();
  const nodes = Array.from({ length: count }, (_, index) => {
    const stream = createStream();
    const opened = {
      outcome: "OPENED" as const,
      nodeId: `n${index}`,
      epoch: 1,
      membership: state("APPROVED" as const),
      marked: false,
      previous: { replicaId: "me", bootId: null, machineFingerprint: null },
      detectedHealth: HEALTHY,
      infoDigest: null,
      revision: 1n,
    };
    const hello = { wishes: NO_WISHES, publicKey: new Uint8Array(32) };
    return { node: replica.take(stream, opened, hello), stream };
  });
  const pass = (ms: number, beating: readonly { readonly node: HeldNode }[] = []) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 100) {
      clock.advance(100);
      for (const { node } of beating) replica.heard(node);
      replica.judge();
    }
  };
  const unhealthy = () => nodes.filter(({ node }) => node.health.state !== "HEALTHY").length;
  return { replica, nodes, pass, unhealthy };
}

describe("a replica that loses most of its streams at once", () => {
  it("should doubt itself before it judges nodes that fell silent together, and judge them after one extension", () => {
    const { nodes, pass, unhealthy } = setUp(40);
    pass(unhealthyAfterMs + DOUBT_MS - 100, nodes.slice(0, 19));
    expect(unhealthy()).toBe(0);
    pass(500, nodes.slice(0, 19));
    expect(unhealthy()).toBe(21);
  });

  it("should judge half of them in time: that may be a zone", () => {
    const { nodes, pass, unhealthy } = setUp(40);
    pass(unhealthyAfterMs, nodes.slice(0, 20));
    expect(unhealthy()).toBe(20);
  });

  it("should judge no node that comes back meanwhile", () => {
    const { nodes, pass, unhealthy } = setUp(40);
    pass(unhealthyAfterMs + 1_000);
    pass(unhealthyAfterMs * 2, nodes);
    expect(unhealthy()).toBe(0);
  });

  it("should extend the time to come back when they break together, once", () => {
    const { replica, nodes, pass, unhealthy } = setUp(40);
    pass(10_000, nodes);
    for (const { node, stream } of nodes) replica.broken(node, stream);
    pass(unhealthyAfterMs + DOUBT_MS - 200);
    expect(unhealthy()).toBe(0);
    pass(400);
    expect(unhealthy()).toBe(40);
  });

  it("should judge the few nodes of a small replica in time", () => {
    const { pass, unhealthy } = setUp(19);
    pass(unhealthyAfterMs);
    expect(unhealthy()).toBe(19);
  });
});
