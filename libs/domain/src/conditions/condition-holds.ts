import { FLAPPING_OUTAGES, FLAPPING_WINDOW_MS, type OutageHistory } from "../health/flapping.ts";
import type { HealthPolicy } from "../policy/policy-fields.ts";
import { type Hold, type HoldKind, liftHold, placeHold } from "../states.ts";
import { describeTroubles, type Trouble } from "./hardware-conditions.ts";

/** What a node's record says that a hold may follow from. */
export interface HoldCauses {
  readonly history: OutageHistory;
  /** What is wrong with its hardware, of all kinds. */
  readonly troubles: readonly Trouble[];
  /** When it rebooted unexpectedly; null when it did not recently. Wall time of the record. */
  readonly rebootedAtMs: number | null;
  /** Whether two agents use its identity. */
  readonly isDuplicated: boolean;
}

/** For how long an unexpected reboot is shown at least, whether it holds the node or not. */
export const REBOOT_SHOWN_MS = 3_600_000;

/**
 * The holds that a node is to have: those of FLAPPING, HARDWARE and IDENTITY as the causes and its policy say, all
 * others as they are. The same array comes back when nothing changes.
 */
export function holdsFor(
  holds: readonly Hold[],
  causes: HoldCauses,
  policy: HealthPolicy,
  by: { readonly actor: string; readonly atMs: number },
): readonly Hold[] {
  const held = withHold(holds, "FLAPPING", flappingCause(causes, policy), by);
  const sound = withHold(held, "HARDWARE", hardwareCause(causes, policy, by.atMs), by);
  // Work would run on whichever machine asks for it first, or on both.
  return withHold(sound, "IDENTITY", causes.isDuplicated ? "two agents use its identity" : null, by);
}

/** A process that lost its session to another one comes back sooner than this, if it lives. */
export const REBOOT_CONFIRMED_AFTER_MS = 15_000;

/** Whether an unexpected reboot lies so far back that it neither shows nor holds any more. */
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
  return `${outages}; lifted after ${Math.round(flappingHoldMs / 6_000) / 10} min without another`;
}

function hardwareCause(
  { troubles, rebootedAtMs }: HoldCauses,
  { hardwareHold, rebootHoldMs }: HealthPolicy,
  nowMs: number,
): string | null {
  if (hardwareHold && troubles.length > 0) return describeTroubles(troubles);
  const isFresh = rebootedAtMs !== null && nowMs - rebootedAtMs < rebootHoldMs;
  return isFresh ? "it rebooted without having said goodbye" : null;
}

/**
 * Place or lift the hold of one kind; all others stay as they are. The same array comes back when nothing changes.
 *
 * @param cause null for no such hold. A change of the actor only is no change.
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
