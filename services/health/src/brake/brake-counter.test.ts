import { describe, expect, it } from "@jest/globals";
import { BRAKE_CLUSTER } from "@rollcall/domain";
import type { HeldNode } from "../replica/held-node.ts";
import { BrakeCounter } from "./brake-counter.ts";

const NOW_MS = 100_000;

interface Facts {
  readonly membership?: string;
  readonly watched?: string;
  readonly written?: string;
  readonly reason?: string;
  readonly silentMs?: number;
}

function nodeOf(facts: Facts): HeldNode {
  const { membership = "APPROVED", watched = "HEALTHY", written = "HEALTHY", reason = "", silentMs = 0 } = facts;
  return {
    membership: { state: membership },
    watch: {
      health: watched,
      lastReceivedMs: NOW_MS - silentMs,
      thresholds: { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000 },
    },
    health: { state: watched, reason },
    writtenHealth: { state: written },
    terms: { labels: new Map() },
  } as unknown as HeldNode;
}

function count(nodes: readonly Facts[]) {
  const replica = { nodes: { all: () => nodes.map(nodeOf) }, silence: { nowMs: () => NOW_MS } };
  const counter = new BrakeCounter({ replica, label: "zone" } as unknown as ConstructorParameters<
    typeof BrakeCounter
  >[0]);
  return counter.count().groups.get(BRAKE_CLUSTER) ?? null;
}

const declared = { watched: "UNHEALTHY", reason: "HEARTBEATS_MISSED", silentMs: 61_000 };

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
    expect(count([facts])).toEqual(expected);
  });
});
