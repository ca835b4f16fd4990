import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { REBOOT_CONFIRMED_AFTER_MS, REBOOT_SHOWN_MS } from "../conditions/condition-holds.ts";
import type { Trouble } from "../conditions/hardware-conditions.ts";
import { DEFAULT_HEALTH_POLICY } from "../policy/policy.ts";
import type { Hold } from "../states.ts";
import { nodeRecord } from "../testing/node.ts";
import { type OwnersView, planConditions } from "./condition-plan.ts";
import type { Node } from "./node.ts";

const HOT: Trouble = { kind: "GPU_TOO_HOT", part: "gpu 0", message: "hot" };
const GONE: Trouble = { kind: "GPU_GONE", part: "gpu 1", message: "gone" };
const POLICY = { ...DEFAULT_HEALTH_POLICY, hardwareHold: true, flappingHoldMs: 300_000, rebootHoldMs: 0 };
const NOW = { replicaId: "r", nowMs: 1_000_000 };
const FLAPPING: Hold = {
  ...{ kind: "FLAPPING", sinceMs: 5, actor: "replica:r" },
  message: "3 outages within 10 min; lifted after 5 min without another outage",
};
const OPERATOR: Hold = { kind: "OPERATOR", sinceMs: 1, message: "", actor: "token:t" };

function view(changes: Partial<OwnersView> = {}): OwnersView {
  return { nodeId: "n", epoch: 1, policy: POLICY, gpuTroubles: null, ...changes };
}

const kinds = (node: Partial<Node>, owners: Partial<OwnersView> = {}) =>
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

  it("should take a change of boot for a reboot once nothing of the boot before has come back", () => {
    const suspectedReboot = { before: "a", after: "b", atMs: NOW.nowMs - REBOOT_CONFIRMED_AFTER_MS };
    expect(kinds({ suspectedReboot: { ...suspectedReboot, atMs: suspectedReboot.atMs + 1 } })).toBeNull();
    const planned = planConditions(nodeRecord({ suspectedReboot }), view(), NOW);
    expect(planned).toMatchObject({
      effects: [{ kind: "rebooted" }],
      events: [{ type: "node.rebooted", before: { bootId: "a" }, after: { bootId: "b" } }],
    });
    const held = { policy: { ...POLICY, rebootHoldMs: 60_000 } };
    expect(kinds({ suspectedReboot }, held)).toEqual(["holds", "rebooted"]);
  });

  it("should hold a node from new work while two agents use its identity", () => {
    const agent = { instanceId: "i", bootId: "a", fingerprint: "f", address: "10.0.0.1:1", atMs: 0, tookOver: true };
    const duplicate = [agent, { ...agent, instanceId: "j" }] as const;
    const planned = planConditions(nodeRecord({ duplicate }), view(), NOW);
    expect(planned).toMatchObject({
      effects: [{ kind: "holds", holds: [{ kind: "IDENTITY" }] }],
      events: [{ type: "node.scheduling.changed", reason: "DUPLICATE_IDENTITY" }],
    });
    const held = { ...OPERATOR, kind: "IDENTITY", message: "two agents use its identity" } as const;
    expect(kinds({ duplicate, holds: [held] })).toBeNull();
    expect(planConditions(nodeRecord({ holds: [held] }), view(), NOW)).toMatchObject({ effects: [{ holds: [] }] });
  });

  it("should end flapping and its hold once the node was steady, and change nothing else", () => {
    const node = nodeRecord({
      holds: [FLAPPING],
      loss: { reaction: "ALLOWED", number: null, group: null, sinceMs: 5 },
      history: { outages: [{ startedAtMs: 5, endedAtMs: NOW.nowMs - 300_000 }], flappingSinceMs: 5 },
    });
    expect(planConditions(node, view(), NOW)).toMatchObject({
      effects: [
        { kind: "holds", holds: [] },
        { kind: "outages", history: { outages: [], flappingSinceMs: null } },
      ],
      events: [{ type: "node.flapping.ended" }, { type: "node.scheduling.changed" }],
    });
    expect(planConditions(node, view(), { ...NOW, nowMs: NOW.nowMs - 1 })).toBeNull();
  });

  it("should hold a node that flaps for as long as its policy says, or never", () => {
    const history = { outages: [{ startedAtMs: 5, endedAtMs: NOW.nowMs }], flappingSinceMs: 5 };
    expect(planConditions(nodeRecord({ history }), view(), NOW)).toMatchObject({
      effects: [{ kind: "holds", holds: [{ kind: "FLAPPING", message: FLAPPING.message }] }],
    });
    const never = { policy: { ...POLICY, flappingHoldMs: 0 } };
    expect(kinds({ history }, never)).toBeNull();
    expect(kinds({ history, holds: [FLAPPING] }, never)).toEqual(["holds"]);
  });

  it("should have nothing left to do after its effects were written, whatever it finds", () => {
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
          history: {
            outages: flappingSinceMs === null ? [] : [{ startedAtMs: flappingSinceMs, endedAtMs: null }],
            flappingSinceMs,
          },
        });
        const owners = view({ gpuTroubles: seen, policy: { ...POLICY, hardwareHold } });
        const planned = planConditions(node, owners, NOW);
        if (planned === null) return;
        // Check that events never name an earlier owner of the node.
        for (const event of planned.events) expect(event.actor).toBe("replica:r");
        let after = node;
        for (const effect of planned.effects) {
          if (effect.kind === "holds") after = { ...after, holds: effect.holds };
          else if (effect.kind === "gpu-troubles") after = { ...after, gpuTroubles: effect.troubles };
          else if (effect.kind === "reboot-over") after = { ...after, rebootedAtMs: null };
          else if (effect.kind === "outages") after = { ...after, history: effect.history };
          else throw new Error(`${effect.kind} is none of its effects`);
        }
        // Check that the plan leaves the holds of other components unchanged.
        expect(after.holds.some(({ kind }) => kind === "OPERATOR")).toBe(
          node.holds.some(({ kind }) => kind === "OPERATOR"),
        );
        expect(planConditions(after, owners, NOW)).toBeNull();
      }),
    );
  });
});

describe("planConditions(), what is reported", () => {
  const changedAtMs = NOW.nowMs - 400_000;

  it("should report how long a node was steady, and how long it flapped", () => {
    const outages = [
      { startedAtMs: 1, endedAtMs: 2 },
      { startedAtMs: 3, endedAtMs: changedAtMs },
    ];
    const node = nodeRecord({ history: { outages, flappingSinceMs: changedAtMs - 50_000 } });
    const planned = planConditions(node, view(), NOW);
    expect(planned?.events[0]).toMatchObject({
      ...{ type: "node.flapping.ended", subject: "n", actor: "replica:r" },
      ...{ before: { flappingMs: 450_000 }, after: { steadyMs: 400_000 } },
    });
    expect(planned?.effects).toMatchObject([{ kind: "outages", history: { outages: [], flappingSinceMs: null } }]);
  });

  it("should correct a history that is ahead of the store's clock, without an event", () => {
    const outage = { startedAtMs: NOW.nowMs + 5, endedAtMs: null };
    const node = nodeRecord({ holds: [FLAPPING], history: { outages: [outage], flappingSinceMs: 5 } });
    expect(planConditions(node, view(), NOW)).toMatchObject({
      effects: [{ kind: "outages", history: { outages: [{ startedAtMs: NOW.nowMs }], flappingSinceMs: 5 } }],
      events: [],
    });
  });

  it("should write an event for the end of a reboot, and name who found a trouble", () => {
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
