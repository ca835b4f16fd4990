import { describe, expect, it } from "@jest/globals";
import { BRAKE_CLUSTER, type HealthState, type MembershipState } from "@rollcall/domain";
import type { LiveNode } from "../replica/live-node.ts";
import { LiveNodes } from "../replica/live-nodes.ts";
import { MEMBERSHIP, recordedHealth } from "../testing/bare-replica.ts";
import { liveNode } from "../testing/live-node.ts";
import { BrakeCounter } from "./brake-counter.ts";

const NOW_MS = 100_000;

interface Facts {
  readonly membership?: MembershipState;
  readonly timed?: HealthState;
  readonly written?: HealthState;
  readonly reason?: string;
  readonly silentMs?: number;
}

function nodeOf(facts: Facts): LiveNode {
  const { membership = "APPROVED", timed = "HEALTHY", written = "HEALTHY", reason = "", silentMs = 0 } = facts;
  const node = liveNode("n1", {
    membership: { ...MEMBERSHIP, state: membership },
    health: { ...recordedHealth(timed), reason },
    writtenHealth: recordedHealth(written),
  });
  const thresholds = { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000 };
  node.timing = { subject: node, health: timed, lastReceivedMs: NOW_MS - silentMs, thresholds };
  return node;
}

function count(facts: Facts) {
  const nodes = new LiveNodes();
  nodes.add(nodeOf(facts));
  const counter = new BrakeCounter({ replica: { nodes, detector: { nowMs: () => NOW_MS } }, label: "zone" });
  return counter.count().groups.get(BRAKE_CLUSTER) ?? null;
}

const declared: Facts = { timed: "UNHEALTHY", reason: "HEARTBEATS_MISSED", silentMs: 61_000 };

describe("BrakeCounter", () => {
  it.each<[string, Facts, { healthy: number; silent: number } | null]>([
    ["one that beats", {}, { healthy: 1, silent: 0 }],
    ["one silent for half of its threshold", { silentMs: 30_000 }, { healthy: 1, silent: 0 }],
    ["one silent for longer", { silentMs: 30_001 }, { healthy: 1, silent: 1 }],
    ["one declared that the record does not know yet", declared, { healthy: 1, silent: 1 }],
    ["one declared and written", { ...declared, written: "UNHEALTHY" }, null],
    ["one that said goodbye", { ...declared, reason: "AGENT_SHUTDOWN" }, null],
    ["one that is not approved", { membership: "PENDING" }, null],
  ])("should count %s", (_, facts, expected) => {
    expect(count(facts)).toEqual(expected);
  });
});
