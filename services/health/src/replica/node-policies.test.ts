import { describe, expect, it } from "@jest/globals";
import { collectPolicies, type PolicyOverride } from "@rollcall/domain";
import { BareStream, bareReplica, HELLO, opening } from "../testing/bare-replica.ts";

/** Create a replica with node n1. The node's thresholds are 60 and 300 s, and its policy can be changed. */
function setUp(options?: Parameters<typeof bareReplica>[0]) {
  const bare = bareReplica(options);
  const { policies } = bare.replica;
  const stream = new BareStream();
  const node = bare.replica.take(stream, opening(1), HELLO);
  /** Apply another policy and send it to the agent. */
  const set = (override: PolicyOverride) => {
    policies.follow(collectPolicies([{ kind: "default", override }]));
    if (policies.settle(node, node.terms.labels)) policies.retell(node, node.terms.labels);
  };
  const thresholds = () => [node.timing.thresholds.unhealthyAfterMs, node.timing.thresholds.unknownAfterMs];
  return { ...bare, policies, stream, node, set, thresholds };
}

describe("NodePolicies", () => {
  it("should apply longer thresholds at once, and shorter ones once acknowledged", () => {
    const { set, thresholds, policies, node } = setUp();
    set({ unhealthyAfterMs: 30_000, unknownAfterMs: 600_000 });
    expect(thresholds()).toEqual([60_000, 600_000]);
    policies.acknowledge(node, 2);
    expect(thresholds()).toEqual([30_000, 600_000]);
  });

  it("should not assume consent of an agent that acknowledges settings", () => {
    const { set, thresholds, policies, node, replica, pass } = setUp();
    policies.acknowledge(node, 1);
    set({ unhealthyAfterMs: 30_000 });
    pass(40_000);
    replica.beat(node, undefined, false);
    expect(thresholds()).toEqual([60_000, 300_000]);
  });

  it("should apply to an agent that never acknowledges, with the first Beat after two of its previous intervals", () => {
    const { set, thresholds, node, replica, pass } = setUp();
    set({ unhealthyAfterMs: 30_000 });
    pass(29_900);
    replica.beat(node, undefined, false);
    expect(thresholds()).toEqual([60_000, 300_000]);
    pass(100);
    replica.beat(node, undefined, false);
    expect(thresholds()).toEqual([30_000, 300_000]);
  });

  it("should admit nodes within its budget, and always a node that is already counted", () => {
    // One heartbeat every 20 s, so the budget has room for only one session.
    const { policies, replica, node, stream } = setUp({ heartbeatsPerSecond: 0.05 });
    expect([policies.mayAdmit(node), policies.mayAdmit(undefined)]).toEqual([true, false]);
    replica.broken(node, stream);
    expect([policies.mayAdmit(node), policies.mayAdmit(undefined)]).toEqual([true, true]);
    replica.take(new BareStream(), opening(1, { nodeId: "n2" }), HELLO);
    expect(policies.mayAdmit(node)).toBe(false);
  });

  it("should send an agent its stretched interval once, and again on each change", () => {
    const { policies, node, replica, pass } = setUp({ heartbeatsPerSecond: 0.1 });
    pass(100);
    expect(policies.newPaceMs(node)).toBe(0);
    const other = new BareStream();
    const second = replica.take(other, opening(1, { nodeId: "n2" }), HELLO);
    pass(100);
    expect(policies.newPaceMs(node)).toBe(20_000);
    expect(policies.newPaceMs(node)).toBe(0);
    replica.broken(second, other);
    pass(100);
    expect(policies.newPaceMs(node)).toBe(15_000);
  });
});
