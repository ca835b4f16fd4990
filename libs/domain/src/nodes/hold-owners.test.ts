import { describe, expect, it } from "@jest/globals";
import { holdsFor } from "../conditions/condition-holds.ts";
import type { DrainIntent } from "../drains/drain.ts";
import { cancelDrain, drainNode, endDrain } from "../drains/drain-decisions.ts";
import { DEFAULT_HEALTH_POLICY } from "../policy/policy.ts";
import type { Hold, HoldKind } from "../states.ts";
import { nodeRecord } from "../testing/node.ts";
import type { Node } from "./node.ts";
import type { NodeEffect } from "./node-effects.ts";
import {
  acceptHardware,
  changeLabels,
  clearMark,
  cordon,
  endCordon,
  markUnhealthy,
  uncordon,
} from "./operator-decisions.ts";

const KINDS: readonly HoldKind[] = ["OPERATOR", "FLAPPING", "HARDWARE", "IDENTITY", "DRAIN", "CONDITION"];
const NOW_MS = 100_000;
const BY = { actor: "token:other", message: "", atMs: NOW_MS };
const NO_CAUSES = {
  ...{ history: { outages: [], flappingSinceMs: null }, troubles: [] },
  ...{ rebootedAtMs: null, isDuplicated: false },
};
const REQUEST = { deadlineMs: 60_000, force: false, ignoreDaemons: false, keepIneligible: false, maxParallel: 0 };
const DRAIN: DrainIntent = { ...REQUEST, selection: "", queued: false, reason: "move", actor: "token:x" };

/** A node with a hold of every kind. The cordon has expired. */
const node = nodeRecord({
  holds: KINDS.map((kind): Hold => {
    const until = kind === "OPERATOR" ? { untilMs: NOW_MS - 1 } : {};
    return { kind, sinceMs: 1, message: "why", actor: `owner of ${kind}`, ...until };
  }),
  info: { cpu: { threads: 4 } },
  mark: { sinceMs: 1, message: "", actor: "token:x" },
});

type Decided = { readonly effects: readonly NodeEffect[] } | { readonly ok: false } | null;

/** The kinds of holds that a decision removes. All others must stay exactly as they were. */
function removedBy(decided: Decided, changed: readonly HoldKind[] = []): readonly HoldKind[] {
  if (decided === null || !("effects" in decided)) throw new Error("it was refused");
  const effect = decided.effects.find(({ kind }) => kind === "holds");
  const holds = effect?.kind === "holds" ? effect.holds : node.holds;
  for (const hold of holds) if (!changed.includes(hold.kind)) expect(node.holds).toContainEqual(hold);
  return KINDS.filter((kind) => !holds.some((hold) => hold.kind === kind));
}

describe("a node that several owners hold", () => {
  it.each<[string, readonly HoldKind[], (of: Node) => readonly HoldKind[]]>([
    ["an uncordon", ["OPERATOR", "DRAIN"], (of) => removedBy(uncordon(of, BY, DRAIN))],
    ["a cordon", [], (of) => removedBy(cordon(of, BY), ["OPERATOR"])],
    ["a cordon that ends", ["OPERATOR"], (of) => removedBy(endCordon(of, NOW_MS))],
    ["the cancellation of a drain", ["DRAIN"], (of) => removedBy(cancelDrain(of, BY, DRAIN))],
    [
      "the cancellation of a drain that leaves a cordon",
      ["DRAIN"],
      (of) => removedBy(cancelDrain(of, BY, { ...DRAIN, keepIneligible: true }), ["OPERATOR"]),
    ],
    ["a drain", [], (of) => removedBy(drainNode(of, { request: REQUEST, selection: "" }, BY, DRAIN), ["DRAIN"])],
    ["the end of a drain", [], (of) => removedBy(endDrain(of, true, BY), ["DRAIN"])],
    ["an accepted hardware", [], (of) => removedBy(acceptHardware(of, BY))],
    ["a mark", [], (of) => removedBy(markUnhealthy({ ...of, mark: null }, BY))],
    ["a cleared mark", [], (of) => removedBy(clearMark(of, BY))],
    ["new labels", [], (of) => removedBy(changeLabels(of, { set: { rack: "r1" }, remove: [] }, BY))],
    [
      "the end of all causes",
      ["FLAPPING", "HARDWARE", "IDENTITY"],
      (of) => {
        const holds = holdsFor(of.holds, NO_CAUSES, DEFAULT_HEALTH_POLICY, BY);
        return removedBy({ effects: [{ kind: "holds", holds }] });
      },
    ],
  ])("should lose by %s only the holds %j", (_, expected, decide) => {
    expect(decide(node)).toEqual(expected);
  });
});
