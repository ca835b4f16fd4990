import { FLAPPING_OUTAGES, FLAPPING_WINDOW_MS, type OutageHistory } from "../health/flapping.ts";
import type { HealthPolicy } from "../policy/policy-fields.ts";
import { type Hold, type HoldKind, liftHold, placeHold } from "../states.ts";
import { describeTroubles, type Trouble } from "./hardware-conditions.ts";

/** The facts about a node that determine its holds. */
export interface HoldCauses {
  readonly history: OutageHistory;
  /** All problems of the node's hardware. */
  readonly troubles: readonly Trouble[];
  /**
   * When the node last rebooted unexpectedly; null if it has not rebooted recently. Wall time of the store.
   */
  readonly rebootedAtMs: number | null;
  /** Whether two agents use the node's identity. */
  readonly isDuplicated: boolean;
}

/** Minimum time in milliseconds to show an unexpected reboot, whether or not it causes a hold. */
export const REBOOT_SHOWN_MS = 3_600_000;

/**
 * The holds that a node must have. FLAPPING, HARDWARE and IDENTITY follow from the causes and the node's
 * policy; all other holds stay unchanged. Returns the same array if nothing changes.
 */
export function holdsFor(
  holds: readonly Hold[],
  causes: HoldCauses,
  policy: HealthPolicy,
  by: { readonly actor: string; readonly atMs: number },
): readonly Hold[] {
  const held = withHold(holds, "FLAPPING", flappingCause(causes, policy), by);
  const sound = withHold(held, "HARDWARE", hardwareCause(causes, policy, by.atMs), by);
  // Hold a node whose identity two agents use. Otherwise work would run on the machine that connects first,
  // or on both machines.
  return withHold(sound, "IDENTITY", causes.isDuplicated ? "two agents use its identity" : null, by);
}

/**
 * Time after which an unexpected reboot counts as confirmed, in milliseconds. If the previous agent process is still
 * running, it reconnects within this time.
 */
export const REBOOT_CONFIRMED_AFTER_MS = 15_000;

/** Whether an unexpected reboot is so old that it is no longer shown and no longer causes a hold. */
export function isRebootOver(
  rebootedAtMs: number,
  nowMs: number,
  { rebootHoldMs }: Pick<HealthPolicy, "rebootHoldMs">,
): boolean {
  return nowMs - rebootedAtMs >= Math.max(REBOOT_SHOWN_MS, rebootHoldMs);
}

function flappingCause({ history }: HoldCauses, { flappingHoldMs }: HealthPolicy): string | null {
  if (history.flappingSinceMs === null || flappingHoldMs === 0) return null;
  const outages = `${FLAPPING_OUTAGES} outages within ${FLAPPING_WINDOW_MS / 60_000} min`;
  return `${outages}; lifted after ${Math.round(flappingHoldMs / 6_000) / 10} min without another outage`;
}

function hardwareCause(
  { troubles, rebootedAtMs }: HoldCauses,
  { hardwareHold, rebootHoldMs }: HealthPolicy,
  nowMs: number,
): string | null {
  if (hardwareHold && troubles.length > 0) return describeTroubles(troubles);
  const isFresh = rebootedAtMs !== null && nowMs - rebootedAtMs < rebootHoldMs;
  return isFresh ? "it rebooted unexpectedly" : null;
}

/**
 * Add or remove the hold of one kind; all others stay unchanged. Returns the same array if nothing changes. A
 * different actor is not a change.
 *
 * @param cause null to remove the hold.
 */
export function withHold(
  holds: readonly Hold[],
  kind: HoldKind,
  cause: string | null,
  { actor, atMs: sinceMs }: { readonly actor: string; readonly atMs: number },
): readonly Hold[] {
  if (cause === null) return liftHold(holds, kind);
  const present = holds.find((hold) => hold.kind === kind);
  if (present?.message === cause) return holds;
  return placeHold(holds, { kind, sinceMs, message: cause, actor });
}
