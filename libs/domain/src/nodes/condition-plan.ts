import { holdsFor, isRebootOver, REBOOT_CONFIRMED_AFTER_MS } from "../conditions/condition-holds.ts";
import { hardwareOf } from "../conditions/hardware.ts";
import {
  hardwareEvent,
  isSameTroubles,
  rebootClearedEvent,
  rebootedEvent,
  type Trouble,
} from "../conditions/hardware-conditions.ts";
import type { Effects } from "../decided.ts";
import { type NewEvent, replicaActor, schedulingEvent } from "../events/events.ts";
import { flappingEndedEvent, isSteady, type OutageHistory, steadySinceMs, withinPast } from "../health/flapping.ts";
import type { HealthPolicy } from "../policy/policy-fields.ts";
import { deriveScheduling, type Hold } from "../states.ts";
import type { NodeEffect } from "./node-effects.ts";
import type { NodeRecord } from "./node-record.ts";

/** What the owner of a node knows of it that the record has to follow. */
export interface OwnersView {
  readonly nodeId: string;
  /** The session epoch under which it is held. */
  readonly epoch: number;
  readonly policy: HealthPolicy;
  /** What samples say is wrong with its GPUs; null as long as there were too few to tell. */
  readonly gpuTroubles: readonly Trouble[] | null;
}

/** What conditions are planned from. NodeRecord is one. */
export type ConditionedNode = Pick<
  NodeRecord,
  | "id"
  | "session"
  | "history"
  | "holds"
  | "scheduling"
  | "info"
  | "missingHardware"
  | "gpuTroubles"
  | "rebootedAtMs"
  | "suspectedReboot"
  | "duplicate"
>;

/** Who plans, and when. */
export interface PlanCircumstances {
  readonly replicaId: string;
  /** Wall time of the record. */
  readonly nowMs: number;
}

/**
 * Decide what follows for a node from its record and from what its owner knows: a flapping that is over, troubles with
 * GPUs, a reboot that is certain by now or not shown any more, and the holds of FLAPPING, HARDWARE and IDENTITY; those
 * of others stay as they are.
 * Each effective change has its event. Null when nothing changes, or the node does not belong to (replica, epoch).
 */
export function planConditions(
  node: ConditionedNode,
  view: OwnersView | undefined,
  { replicaId, nowMs }: PlanCircumstances,
): Effects<NodeEffect> | null {
  const { epoch, replicaId: owner } = node.session;
  if (view === undefined || owner !== replicaId || epoch !== view.epoch) return null;
  const by = { actor: replicaActor(replicaId), nowMs };
  const flapping = planFlapping(node, view, by);
  const gpuTroubles = planGpus(node, view);
  const rebootOver = node.rebootedAtMs !== null && isRebootOver(node.rebootedAtMs, nowMs, view.policy);
  const rebooted = confirmedReboot(node, nowMs);
  const causes = {
    history: flapping.history,
    troubles: [...node.missingHardware, ...(gpuTroubles ?? node.gpuTroubles)],
    rebootedAtMs: rebooted === null ? (rebootOver ? null : node.rebootedAtMs) : nowMs,
    isDuplicated: node.duplicate !== null,
  };
  const holds = holdsFor(node.holds, causes, view.policy, { actor: by.actor, atMs: nowMs });
  const effects: readonly NodeEffect[] = [
    ...(holds === node.holds ? [] : [{ kind: "holds", holds } as const]),
    ...(flapping.history === node.history ? [] : [{ kind: "outages", history: flapping.history } as const]),
    ...(gpuTroubles === null ? [] : [{ kind: "gpu-troubles", troubles: gpuTroubles } as const]),
    ...(rebootOver ? [{ kind: "reboot-over" } as const] : []),
    ...(rebooted === null ? [] : [{ kind: "rebooted" } as const]),
  ];
  if (effects.length === 0) return null;
  const hardware = hardwareEvent({
    ...{ subject: node.id, actor: by.actor },
    before: node.gpuTroubles,
    after: gpuTroubles ?? node.gpuTroubles,
  });
  const events = [
    ...flapping.events,
    ...(hardware === null ? [] : [hardware]),
    ...(rebootOver ? [rebootClearedEvent(node.id, by.actor)] : []),
    ...(rebooted === null ? [] : [rebootedEvent({ ...rebooted, subject: node.id, actor: by.actor })]),
    ...holdEvents(node, holds, by),
  ];
  return { effects, events };
}

/** A change of boot id after which nothing of the boot before has come back. */
function confirmedReboot({ suspectedReboot }: ConditionedNode, nowMs: number): NodeRecord["suspectedReboot"] {
  if (suspectedReboot === null) return null;
  return Math.abs(nowMs - suspectedReboot.atMs) >= REBOOT_CONFIRMED_AFTER_MS ? suspectedReboot : null;
}

interface By {
  readonly actor: string;
  readonly nowMs: number;
}

/** Flapping ends once the node was steady; times that lie ahead of the record's clock are corrected. */
function planFlapping(
  { id, history: before }: ConditionedNode,
  { policy: { flappingHoldMs } }: OwnersView,
  { actor, nowMs }: By,
): { readonly history: OutageHistory; readonly events: readonly NewEvent[] } {
  const { flappingSinceMs } = before;
  if (flappingSinceMs === null) return { history: before, events: [] };
  const history = withinPast(before, nowMs);
  if (!isSteady(history, nowMs, flappingHoldMs)) return { history, events: [] };
  const steadyMs = nowMs - (steadySinceMs(history) ?? nowMs);
  const end = { actor, steadyMs, flappingMs: nowMs - flappingSinceMs };
  return { history: { outages: [], flappingSinceMs: null }, events: [flappingEndedEvent(id, end)] };
}

/**
 * Null when the record has it already. A GPU that the node does not list any more is not gone from its samples: it is
 * missing, or was never approved.
 */
function planGpus(node: ConditionedNode, view: OwnersView): readonly Trouble[] | null {
  if (view.gpuTroubles === null) return null;
  const listed = new Set(hardwareOf(node.info ?? undefined)?.gpus.map(({ index }) => index));
  const troubles = view.gpuTroubles.filter(
    ({ kind, part }) => kind !== "GPU_GONE" || listed.has(Number(part.slice("gpu ".length))),
  );
  return isSameTroubles(troubles, node.gpuTroubles) ? null : troubles;
}

function holdEvents(node: ConditionedNode, holds: readonly Hold[], { actor, nowMs }: By): readonly NewEvent[] {
  if (holds === node.holds) return [];
  const after = deriveScheduling(holds, nowMs);
  return [schedulingEvent({ subject: node.id, before: node.scheduling, after, actor, message: after.message })];
}
