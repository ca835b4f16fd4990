import { describe, expect, it } from "@jest/globals";
import { DEFAULT_HEALTH_POLICY } from "@rollcall/domain";
import { faultsOverIntervals } from "@rollcall/testkit/time";
import { adopted, BareStream, bareReplica, HELLO, opening } from "../testing/bare-replica.ts";

describe("protections that overlap", () => {
  const DUPLICATED = { isTakenOver: false, isDuplicated: true };
  const TAKEN_OVER = { isTakenOver: true, isDuplicated: false };

  it("should keep a node contested for the longer time, whichever begins first", () => {
    for (const [first, second] of [
      [DUPLICATED, TAKEN_OVER],
      [TAKEN_OVER, DUPLICATED],
    ] as const) {
      const { replica, clock } = bareReplica();
      replica.take(new BareStream(), opening(1, first), HELLO);
      clock.advance(1_000);
      const node = replica.take(new BareStream(), opening(2, second), HELLO);
      clock.advance(180_000 - (first === DUPLICATED ? 1_000 : 0) - 1);
      expect(replica.isContested(node)).toBe(true);
      clock.advance(1);
      expect(replica.isContested(node)).toBe(false);
    }
  });

  it("should give a node that was turned away the latest time to return, whatever order the times come in", () => {
    const { unhealthyAfterMs } = DEFAULT_HEALTH_POLICY;
    for (const delaysMs of [
      [60_000, 5_000],
      [5_000, 60_000],
      [60_000, ...Array.from({ length: 100 }, () => 1_000)],
    ]) {
      const { replica, pass } = bareReplica();
      const node = replica.take(new BareStream(), opening(1), HELLO);
      for (const delayMs of delaysMs) replica.detector.turnedAway(node, delayMs);
      pass(60_000 + unhealthyAfterMs - 100);
      expect([delaysMs, node.health.state]).toEqual([delaysMs, "HEALTHY"]);
      pass(200);
      expect(node.health.state).toBe("UNHEALTHY");
    }
  });

  it("should keep adopted nodes while any Hello may be turned away unread", () => {
    const { unhealthyAfterMs } = DEFAULT_HEALTH_POLICY;
    const { replica, pass } = bareReplica();
    replica.adopt([adopted(3)], 20n);
    const node = replica.nodes.find("n1");
    replica.detector.turnedAway(undefined, 2 * unhealthyAfterMs);
    replica.detector.turnedAway(undefined, 1_000);
    // The deadline within the protection starts again, with the full time.
    pass(2 * unhealthyAfterMs - 100);
    expect(node?.health.state).toBe("HEALTHY");
    pass(2 * unhealthyAfterMs + 200);
    expect(node?.health.state).toBe("UNHEALTHY");
  });
});

describe("a node's silence", () => {
  it("should begin again with each sign of life, for a hundred intervals", async () => {
    const faults = await faultsOverIntervals(() => {
      const { replica, pass } = bareReplica();
      const node = replica.take(new BareStream(), opening(1), HELLO);
      return {
        ...{ limitMs: DEFAULT_HEALTH_POLICY.unhealthyAfterMs, stepMs: 1_000, pass },
        progress: () => replica.heard(node),
        isKept: () => node.health.state === "HEALTHY",
      };
    });
    expect(faults).toEqual([]);
  });
});
