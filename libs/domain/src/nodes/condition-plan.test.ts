import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { REBOOT_SHOWN_MS } from "../conditions/condition-holds.ts";
import type { Trouble } from "../conditions/hardware-conditions.ts";
import { DEFAULT_HEALTH_POLICY } from "../policy/policy.ts";
import type { Hold } from "../states.ts";
import { nodeRecord } from "../testing/node-record.ts";
import { type OwnersView, planConditions } from "./condition-plan.ts";
import type { NodeRecord } from "./node-record.ts";

const HOT: Trouble = { kind: "GPU_TOO_HOT", part: "gpu 0", message: "hot" };
const GONE: Trouble = { kind: "GPU_GONE", part: "gpu 1", message: "gone" };
const POLICY = { ...DEFAULT_HEALTH_POLICY, hardwareHold: true, flappingHoldMs: 300_000, rebootHoldMs: 0 };
const NOW = { replicaId: "r", nowMs: 1_000_000 };
const OPERATOR: Hold = { kind: "OPERATOR", sinceMs: 1, message: "", actor: "token:t" };

function view(changes: Partial<OwnersView> = {}): OwnersView {
  return { nodeId: "n", epoch: 1, policy: POLICY, gpuTroubles: null, ...changes };
}

const kinds = (node: Partial<NodeRecord>, owners: Partial<OwnersView> = {}) =>
  planConditions(nodeRecord(node), view(owners), NOW)?.effects.map(({ kind }) => kind) ?? null;

describe("planConditions()", () => {
  it("should do nothing for a node that is as it should be, or not the replica's", () => {
    expect(planConditions(nodeRecord(), view(), NOW)).toBeNull();
    expect(planConditions(nodeRecord(), view({ gpuTroubles: [] }), NOW)).toBeNull();
    const owners = { gpuTroubles: [HOT] };
    expect(kinds({}, { ...owners, epoch: 2 })).toBeNull();
    expect(kinds({ session: { epoch: 1, replicaId: "other", address: null } }, owners)).toBeNull();
    expect(planConditions(nodeRecord(), undefined, NOW)).toBeNull();
  });

  it("should write new troubles and the hold that follows from them, each with its event", () => {
    const planned = planConditions(nodeRecord({ holds: [OPERATOR] }), view({ gpuTroubles: [HOT] }), NOW);
    expect(planned).toMatchObject({
      effects: [
        { kind: "holds", holds: [OPERATOR, { kind: "HARDWARE", message: "hot", actor: "replica:r" }] },
        { kind: "gpu-troubles", troubles: [HOT] },
      ],
      events: [{ type: "node.hardware.degraded" }, { type: "node.scheduling.changed" }],
    });
  });

  it("should not report a GPU as missing that the node does not list", () => {
    expect(kinds({ info: { gpus: [{ index: 0 }] } }, { gpuTroubles: [GONE] })).toBeNull();
    expect(kinds({ info: { gpus: [{ index: 1 }] } }, { gpuTroubles: [GONE] })).toEqual(["holds", "gpu-troubles"]);
  });

  it.each([
    [REBOOT_SHOWN_MS - 1, null],
    [REBOOT_SHOWN_MS, ["reboot-over"]],
  ])("should stop to show a reboot of %s ms ago as %j", (agoMs, expected) => {
    const late = { replicaId: "r", nowMs: REBOOT_SHOWN_MS * 2 };
    const node = nodeRecord({ rebootedAtMs: late.nowMs - agoMs });
    expect(planConditions(node, view(), late)?.effects.map(({ kind }) => kind) ?? null).toEqual(expected);
  });

  it("should end flapping once the node was steady, and show what was detected", () => {
    const flapping = { state: "UNHEALTHY", sinceMs: 5, reason: "FLAPPING", message: "", actor: "replica:r" } as const;
    const detected = { ...flapping, state: "HEALTHY", reason: "BEAT" } as const;
    const loss = { reaction: "ALLOWED", number: null, group: null, sinceMs: 5 } as const;
    const node = nodeRecord({
      recordedHealth: flapping,
      detectedHealth: detected,
      holds: [{ kind: "FLAPPING", sinceMs: 5, message: "its health changes too often", actor: "replica:r" }],
      loss,
      history: { changes: [NOW.nowMs - 300_000], flappingSinceMs: 5 },
    });
    expect(planConditions(node, view(), NOW)).toMatchObject({
      effects: [
        { kind: "holds", holds: [] },
        {
          kind: "session",
          session: { health: { state: "HEALTHY" }, detected: null, flappingSinceMs: null, loss: { reaction: null } },
        },
      ],
      events: [
        { type: "node.flapping.ended" },
        { type: "node.health.changed", after: { health: "HEALTHY" } },
        { type: "node.scheduling.changed" },
      ],
    });
    const marked = planConditions({ ...node, mark: { sinceMs: 1, message: "", actor: "t" } }, view(), NOW);
    expect(marked?.events.map(({ type }) => type)).not.toContain("node.health.changed");
    expect(marked?.effects).toMatchObject([{}, { session: { loss } }]);
    const early = { ...NOW, nowMs: NOW.nowMs - 1 };
    expect(planConditions(nodeRecord({ ...node }), view(), early)?.events ?? []).not.toContainEqual(
      expect.objectContaining({ type: "node.flapping.ended" }),
    );
  });

  it("should have nothing left to do once its effects are written, whatever it finds", () => {
    const troubles = fc.subarray<Trouble>([HOT, GONE]);
    const record = fc.record({
      gpuTroubles: troubles,
      missing: fc.boolean(),
      rebootedAtMs: fc.option(fc.integer({ min: 0, max: NOW.nowMs }), { nil: null }),
      holds: fc.subarray<Hold>([OPERATOR, { ...OPERATOR, kind: "FLAPPING" }, { ...OPERATOR, kind: "HARDWARE" }]),
      seen: fc.option(troubles, { nil: null }),
      hardwareHold: fc.boolean(),
      flappingSinceMs: fc.option(fc.integer({ min: 0, max: NOW.nowMs }), { nil: null }),
    });
    fc.assert(
      fc.property(record, ({ seen, hardwareHold, flappingSinceMs, missing, ...changes }) => {
        const node = nodeRecord({
          ...changes,
          info: { gpus: [{ index: 0 }, { index: 1 }] },
          missingHardware: missing ? [{ kind: "HARDWARE_DEGRADED", part: "cores", message: "3 of 4" }] : [],
          history: { changes: flappingSinceMs === null ? [] : [flappingSinceMs], flappingSinceMs },
        });
        const owners = view({ gpuTroubles: seen, policy: { ...POLICY, hardwareHold } });
        const planned = planConditions(node, owners, NOW);
        if (planned === null) return;
        let after = node;
        for (const effect of planned.effects) {
          if (effect.kind === "holds") after = { ...after, holds: effect.holds };
          else if (effect.kind === "gpu-troubles") after = { ...after, gpuTroubles: effect.troubles };
          else if (effect.kind === "reboot-over") after = { ...after, rebootedAtMs: null };
          else if (effect.kind === "session") {
            const { health, detected, changes: past, flappingSinceMs: since } = effect.session;
            const history = { changes: past, flappingSinceMs: since };
            after = { ...after, recordedHealth: health, detectedHealth: detected ?? health, history };
          } else throw new Error(`${effect.kind} is none of its effects`);
        }
        // Holds of others are never touched.
        expect(after.holds.some(({ kind }) => kind === "OPERATOR")).toBe(
          node.holds.some(({ kind }) => kind === "OPERATOR"),
        );
        expect(planConditions(after, owners, NOW)).toBeNull();
      }),
    );
  });
});

describe("planConditions(), what is told", () => {
  const flapping = { state: "UNHEALTHY", sinceMs: 5, reason: "FLAPPING", message: "m", actor: "replica:r" } as const;
  const changedAtMs = NOW.nowMs - 400_000;

  it("should tell for how long a node was steady, and how long it flapped", () => {
    const node = nodeRecord({
      recordedHealth: flapping,
      detectedHealth: { ...flapping, reason: "HEARTBEATS_MISSED" },
      history: { changes: [1, changedAtMs], flappingSinceMs: changedAtMs - 50_000 },
    });
    const planned = planConditions(node, view(), NOW);
    expect(planned?.events[0]).toMatchObject({
      ...{ type: "node.flapping.ended", subject: "n", actor: "replica:r" },
      ...{ before: { flappingMs: 450_000 }, after: { steadyMs: 400_000 } },
    });
    expect(planned?.effects).toMatchObject([{ kind: "session", session: { changes: [], flappingSinceMs: null } }]);
  });

  it("should correct a history that lies ahead of the record's clock, and tell nothing", () => {
    const shown = {
      ...flapping,
      message: "changed health more than 5 times in 10 minutes; until it has been steady for 5 min",
    };
    const node = nodeRecord({
      ...{
        recordedHealth: shown,
        holds: [{ kind: "FLAPPING", sinceMs: 5, message: "its health changes too often", actor: "replica:r" }],
      },
      history: { changes: [NOW.nowMs + 5], flappingSinceMs: 5 },
    });
    const planned = planConditions(node, view(), NOW);
    expect(planned?.effects.at(-1)).toMatchObject({
      session: { changes: [NOW.nowMs], flappingSinceMs: 5, health: shown },
    });
    expect(planned?.events.filter(({ type }) => type === "node.health.changed")).toEqual([]);
  });

  it("should tell with an event that a reboot is over, and who found a trouble", () => {
    const late = { replicaId: "r", nowMs: REBOOT_SHOWN_MS * 2 };
    const over = planConditions(nodeRecord({ rebootedAtMs: 0 }), view(), late);
    expect(over).toMatchObject({ effects: [{ kind: "reboot-over" }], events: [{ subject: "n", actor: "replica:r" }] });
    const hot = planConditions(
      nodeRecord(),
      view({ gpuTroubles: [HOT], policy: { ...POLICY, hardwareHold: false } }),
      NOW,
    );
    expect(hot).toMatchObject({ events: [{ type: "node.hardware.degraded", subject: "n", actor: "replica:r" }] });
    expect(hot?.events).toHaveLength(1);
  });
});
