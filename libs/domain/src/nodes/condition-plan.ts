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
import type { Node } from "./node.ts";
import type { NodeEffect } from "./node-effects.ts";

/** What a node's owner knows about the node, to be written to the store. */
export interface OwnersView {
  readonly nodeId: string;
  /** The epoch of the owner's session. */
  readonly epoch: number;
  readonly policy: HealthPolicy;
  /** Troubles with the node's GPUs, from samples; null while there are too few samples. */
  readonly gpuTroubles: readonly Trouble[] | null;
}

/** The fields of a node that determine its conditions. */
export type ConditionedNode = Pick<
  Node,
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

/** Which replica plans, and when. */
export interface PlanCircumstances {
  readonly replicaId: string;
  /** Wall time of the store. */
  readonly nowMs: number;
}

/**
 * Plan the changes to a node's conditions, from its row and from what its owner knows: the end of flapping, GPU
 * troubles, a reboot that is confirmed or no longer shown, and the holds FLAPPING, HARDWARE and IDENTITY. Other holds
 * stay unchanged. Each change that is shown has an event. Null if nothing changes, or if the node does not belong to
 * this replica and epoch.
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

/** Return the suspected reboot if it is confirmed: no process of the previous boot has returned for long enough. */
function confirmedReboot({ suspectedReboot }: ConditionedNode, nowMs: number): Node["suspectedReboot"] {
  if (suspectedReboot === null) return null;
  return Math.abs(nowMs - suspectedReboot.atMs) >= REBOOT_CONFIRMED_AFTER_MS ? suspectedReboot : null;
}

interface By {
  readonly actor: string;
  readonly nowMs: number;
}

/**
 * End flapping if the node has been steady for long enough. Times in the future are corrected to the store's time.
 */
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
 * The GPU troubles to store; null if they are already stored. A GPU that the node no longer lists does not count as
 * gone because of its samples: missingHardware() reports it, unless it was never approved.
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
