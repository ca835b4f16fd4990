import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Label, LabelChange } from "../labels/labels.ts";
import { nodeRecord } from "../testing/node.ts";
import {
  acceptHardware,
  changeLabels,
  clearMark,
  cordon,
  etagRefusal,
  markUnhealthy,
  requireKeyRotation,
  uncordon,
} from "./operator-decisions.ts";

const BY = { actor: "token:t", message: "why", atMs: 9 };
const HOLD = { kind: "OPERATOR", sinceMs: 1, message: "before", actor: "token:x" } as const;
const FLAPPING = { kind: "FLAPPING", sinceMs: 2, message: "flaps", actor: "replica:r" } as const;
const MARK = { sinceMs: 3, message: "smells", actor: "token:x" };
const INFO = { cpu: { cores: 4 }, memoryBytes: "1024", hostname: "h" };
const HARDWARE = { cores: 4, memoryBytes: 1024, diskBytes: 0, gpus: [], vfioAddresses: [], areGpusKnown: true };
const orchestrator = nodeRecord({ type: "ORCHESTRATOR", keyFingerprint: null });

describe("refusals of operators' decisions", () => {
  it.each([
    ["an orchestrator to cordon", cordon(orchestrator, BY), "NODE_IS_ORCHESTRATOR"],
    ["a node cordoned twice", cordon(nodeRecord({ holds: [HOLD] }), BY), "NODE_ALREADY_CORDONED"],
    ["a node that is not cordoned", uncordon(nodeRecord({ holds: [FLAPPING] }), BY, null), "NODE_NOT_CORDONED"],
    ["an orchestrator to mark", markUnhealthy(orchestrator, BY), "NODE_IS_ORCHESTRATOR"],
    ["a node marked twice", markUnhealthy(nodeRecord({ mark: MARK }), BY), "NODE_ALREADY_MARKED"],
    ["a node without a mark", clearMark(nodeRecord(), BY), "NODE_NOT_MARKED"],
    ["a node without a key", requireKeyRotation(orchestrator, BY), "NODE_IS_ORCHESTRATOR"],
    [
      "a node told to rotate before",
      requireKeyRotation(nodeRecord({ keyRotationRequiredSinceMs: 0 }), BY),
      "KEY_ROTATION_ALREADY_REQUIRED",
    ],
    ["an orchestrator's hardware", acceptHardware(orchestrator, BY), "NODE_IS_ORCHESTRATOR"],
    ["hardware that was not reported", acceptHardware(nodeRecord(), BY), "NODE_HARDWARE_UNKNOWN"],
    [
      "hardware that is accepted already",
      acceptHardware(nodeRecord({ info: INFO, approvedHardware: HARDWARE }), BY),
      "NODE_HARDWARE_UNCHANGED",
    ],
  ])("should be given for %s, naming the node", (_, decided, reason) => {
    expect(decided).toMatchObject({ ok: false, refusal: { reason, metadata: { node: "n" } } });
    if (!decided.ok) expect(decided.refusal.message).toContain("node n ");
  });

  it("should say when a rotation was required", () => {
    const decided = requireKeyRotation(nodeRecord({ keyRotationRequiredSinceMs: 0 }), BY);
    expect(decided).toMatchObject({ refusal: { message: expect.stringContaining("1970-01-01T00:00:00.000Z") } });
  });
});

describe("cordon() and uncordon()", () => {
  it("should place and lift only the operator's hold, each with its event", () => {
    const placed = { kind: "OPERATOR", sinceMs: 9, message: "why", actor: "token:t" };
    expect(cordon(nodeRecord({ holds: [FLAPPING] }), BY)).toMatchObject({
      effects: [{ kind: "holds", holds: [FLAPPING, placed] }],
      events: [{ type: "node.scheduling.changed", subject: "n", actor: "token:t", message: "why" }],
    });
    expect(uncordon(nodeRecord({ holds: [HOLD, FLAPPING] }), BY, null)).toMatchObject({
      effects: [{ kind: "holds", holds: [FLAPPING] }],
      events: [{ after: { scheduling: "INELIGIBLE", holds: ["FLAPPING"] } }],
    });
  });
});

describe("markUnhealthy() and clearMark()", () => {
  it("should list the mark, the loss and both events", () => {
    expect(markUnhealthy(nodeRecord(), BY)).toMatchObject({
      effects: [
        { kind: "mark", mark: { sinceMs: 9, message: "why", actor: "token:t" } },
        { kind: "loss", loss: { reaction: "ALLOWED", sinceMs: 9 } },
      ],
      events: [
        { type: "node.health.changed", reason: "OPERATOR_MARKED", after: { health: "UNHEALTHY" } },
        { type: "node.reactions.allowed", reason: "OPERATOR_MARKED" },
      ],
    });
  });

  it("should not change the loss of a node that cannot have one", () => {
    const pending = nodeRecord({
      membership: { state: "PENDING", sinceMs: 0, reason: "R", message: "", actor: "system" },
    });
    expect(markUnhealthy(pending, BY)).toMatchObject({ effects: [{ kind: "mark" }], events: [{}] });
  });

  it("should show the detected health again, with the operator as actor", () => {
    const loss = { reaction: "ALLOWED", number: null, group: null, sinceMs: 3 } as const;
    expect(clearMark(nodeRecord({ mark: MARK, loss }), BY)).toMatchObject({
      effects: [
        { kind: "mark", mark: null },
        { kind: "loss", loss: { reaction: null, sinceMs: null } },
      ],
      events: [{ reason: "OPERATOR_MARK_CLEARED", actor: "token:t", message: "why", after: { health: "HEALTHY" } }],
    });
  });
});

describe("requireKeyRotation() and acceptHardware()", () => {
  it("should do one thing with one event", () => {
    expect(requireKeyRotation(nodeRecord(), BY)).toMatchObject({
      effects: [{ kind: "require-key-rotation" }],
      events: [{ type: "node.key.rotation.required", before: { keyFingerprint: "SHA256:n" } }],
    });
    const less = { ...HARDWARE, cores: 8 };
    expect(acceptHardware(nodeRecord({ info: INFO, approvedHardware: less }), BY)).toMatchObject({
      effects: [{ kind: "accept-hardware" }],
      events: [{ before: { hardware: { cores: 8 } }, after: { hardware: { cores: 4 } } }],
    });
  });
});

describe("changeLabels()", () => {
  const labels: readonly Label[] = [
    { key: "a", value: "1", tier: "agent" },
    { key: "b", value: "1", tier: "operator" },
  ];
  const change = (wanted: LabelChange) => changeLabels(nodeRecord({ labels }), wanted, BY);

  it("should write the whole tier, and report the labels in effect", () => {
    expect(change({ set: { a: "2" }, remove: ["b"] })).toMatchObject({
      effects: [{ kind: "labels", tier: "operator", labels: [{ key: "a", value: "2", tier: "operator" }] }],
      events: [{ before: { labels: { a: "1", b: "1" } }, after: { labels: { a: "2" } } }],
    });
  });

  it("should do nothing when all is as wanted", () => {
    expect(change({ set: { b: "1" }, remove: ["no-such"] })).toEqual({ ok: true, effects: [], events: [] });
  });

  it("should refuse to remove what another tier has set, and more labels than are kept", () => {
    expect(change({ set: {}, remove: ["a"] })).toMatchObject({
      refusal: { reason: "LABEL_NOT_SET_BY_OPERATOR", metadata: { labels: "a", tiers: "agent" } },
    });
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, ""]));
    expect(change({ set: many, remove: [] })).toMatchObject({ refusal: { reason: "INVALID_LABEL" } });
  });

  it("should do nothing the second time, whatever the change", () => {
    const key = fc.constantFrom("a", "b", "c");
    const wanted = fc.record({
      set: fc.dictionary(key, fc.constantFrom("1", "2")),
      remove: fc.array(fc.constantFrom("c", "d")),
    });
    fc.assert(
      fc.property(wanted, ({ set, remove }) => {
        const node = nodeRecord({ labels });
        const once = { set, remove: remove.filter((it) => !Object.hasOwn(set, it)) };
        const first = changeLabels(node, once, BY);
        if (!first.ok) throw new Error(first.refusal.message);
        const [effect] = first.effects;
        if (effect?.kind !== "labels") return;
        const after = [...labels.filter(({ tier }) => tier !== "operator"), ...effect.labels];
        expect(changeLabels(nodeRecord({ labels: after }), once, BY)).toEqual({ ok: true, effects: [], events: [] });
      }),
    );
  });
});

describe("etagRefusal()", () => {
  it("should refuse every etag but the node's own and none", () => {
    expect(etagRefusal(nodeRecord(), "")).toBeNull();
    expect(etagRefusal(nodeRecord(), "etag-1")).toBeNull();
    expect(etagRefusal(nodeRecord(), "etag-0")).toMatchObject({
      refusal: { reason: "ETAG_MISMATCH", metadata: { node: "n", etag: "etag-1" } },
    });
  });
});
