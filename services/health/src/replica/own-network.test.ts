import { describe, expect, it } from "@jest/globals";
import { DEFAULT_HEALTH_POLICY } from "@rollcall/domain";
import { BareStream, bareReplica, HELLO, opening } from "../testing/bare-replica.ts";
import type { LiveNode } from "./live-node.ts";

const DOUBT_MS = 30_000;
const { unhealthyAfterMs } = DEFAULT_HEALTH_POLICY;

/** A replica with `count` nodes, which all sent a heartbeat at time 0. */
function setUp(count: number) {
  const { replica, clock } = bareReplica();
  const nodes = Array.from({ length: count }, (_, index) => {
    const stream = new BareStream();
    return { node: replica.take(stream, opening(1, { nodeId: `n${index}` }), HELLO), stream };
  });
  const pass = (ms: number, beating: readonly { readonly node: LiveNode }[] = []) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 100) {
      clock.advance(100);
      for (const { node } of beating) replica.heard(node);
      replica.evaluate();
    }
  };
  const unhealthy = () => nodes.filter(({ node }) => node.health.state !== "HEALTHY").length;
  return { replica, nodes, pass, unhealthy };
}

describe("a replica that loses most of its streams at once", () => {
  it("should doubt its own network when nodes fall silent together, and declare them after one extension", () => {
    const { nodes, pass, unhealthy } = setUp(40);
    pass(unhealthyAfterMs + DOUBT_MS - 100, nodes.slice(0, 19));
    expect(unhealthy()).toBe(0);
    pass(500, nodes.slice(0, 19));
    expect(unhealthy()).toBe(21);
  });

  it("should declare half of them in time, because they can be a zone", () => {
    const { nodes, pass, unhealthy } = setUp(40);
    pass(unhealthyAfterMs, nodes.slice(0, 20));
    expect(unhealthy()).toBe(20);
  });

  it("should declare no node that comes back in the meantime", () => {
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

  it("should declare the few nodes of a small replica in time", () => {
    const { pass, unhealthy } = setUp(19);
    pass(unhealthyAfterMs);
    expect(unhealthy()).toBe(19);
  });
});
