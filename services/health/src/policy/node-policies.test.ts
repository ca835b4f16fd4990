import { describe, expect, it } from "@jest/globals";
import { collectPolicies, type PolicyOverride } from "@rollcall/domain";
import { BareStream, bareReplica, HELLO, opening } from "../testing/bare-replica.ts";

/** A replica with node n1, judged after 60 and 300 s, whose policy can be changed. */
function setUp(options?: Parameters<typeof bareReplica>[0]) {
  const bare = bareReplica(options);
  const { policies } = bare.replica;
  const stream = new BareStream();
  const node = bare.replica.take(stream, opening(1), HELLO);
  /** Settle another policy, and have the agent told of it. */
  const set = (override: PolicyOverride) => {
    policies.follow(collectPolicies([{ kind: "default", override }]));
    if (policies.settle(node, node.terms.labels)) policies.retell(node, node.terms.labels);
  };
  const thresholds = () => [node.timing.thresholds.unhealthyAfterMs, node.timing.thresholds.unknownAfterMs];
  return { ...bare, policies, stream, node, set, thresholds };
}

describe("NodePolicies", () => {
  it("should let what becomes longer apply at once, and what becomes shorter once it is acknowledged", () => {
    const { set, thresholds, policies, node } = setUp();
    set({ unhealthyAfterMs: 30_000, unknownAfterMs: 600_000 });
    expect(thresholds()).toEqual([60_000, 600_000]);
    policies.acknowledge(node, 2);
    expect(thresholds()).toEqual([30_000, 600_000]);
  });

  it("should take no silence for consent of an agent that says what it keeps to", () => {
    const { set, thresholds, policies, node, replica, pass } = setUp();
    policies.acknowledge(node, 1);
    set({ unhealthyAfterMs: 30_000 });
    pass(40_000);
    replica.beat(node, undefined, false);
    expect(thresholds()).toEqual([60_000, 300_000]);
  });

  it("should apply to an agent that never says so with the first Beat after two of its former intervals", () => {
    const { set, thresholds, node, replica, pass } = setUp();
    set({ unhealthyAfterMs: 30_000 });
    pass(29_900);
    replica.beat(node, undefined, false);
    expect(thresholds()).toEqual([60_000, 300_000]);
    pass(100);
    replica.beat(node, undefined, false);
    expect(thresholds()).toEqual([30_000, 300_000]);
  });

  it("should admit within its budget, and a node again that has its place", () => {
    // Beats at least every 20 s: one session.
    const { policies, replica, node, stream } = setUp({ heartbeatsPerSecond: 0.05 });
    expect([policies.mayAdmit(node), policies.mayAdmit(undefined)]).toEqual([true, false]);
    replica.broken(node, stream);
    expect([policies.mayAdmit(node), policies.mayAdmit(undefined)]).toEqual([true, true]);
    replica.take(new BareStream(), opening(1, { nodeId: "n2" }), HELLO);
    expect(policies.mayAdmit(node)).toBe(false);
  });

  it("should tell an agent once by how much it is stretched, and each time that changes", () => {
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
