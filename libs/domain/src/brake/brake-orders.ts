import type { Decided } from "../decided.ts";
import { refused } from "../refusal.ts";
import { brakeEvent } from "./brake-events.ts";
import type { BrakeRow } from "./brake-plan.ts";

/** What to write about a brake, whose row is locked. */
export type BrakeEffect =
  | { readonly kind: "freeze"; readonly actor: string; readonly reason: string }
  | { readonly kind: "unfreeze" }
  /** Everything goes that is pending by now. */
  | { readonly kind: "release-all"; readonly actor: string; readonly reason: string };

/** Why an operator's word about a brake is refused. */
export type BrakeRefusalReason = "BRAKE_ALREADY_FROZEN" | "BRAKE_NOT_FROZEN" | "BRAKE_CLUSTER_FROZEN";

interface By {
  readonly actor: string;
  /** In the operator's words; may be empty. */
  readonly message: string;
}

/** Decide to hold back every reaction of a group. */
export function freezeBrake(row: BrakeRow, { actor, message }: By): Decided<BrakeEffect, BrakeRefusalReason> {
  const { group, mode, frozen } = row;
  if (frozen !== null) {
    const why = frozen.reason === "" ? "" : `: ${frozen.reason}`;
    const text = `the brake of ${group} was frozen already, by ${frozen.actor}${why}`;
    return refused("BRAKE_ALREADY_FROZEN", text, { group, actor: frozen.actor });
  }
  const change = { group, before: mode, after: "FROZEN", reason: "OPERATOR_FROZEN" } as const;
  return {
    ok: true,
    effects: [{ kind: "freeze", actor, reason: message }],
    events: [brakeEvent({ ...change, actor, message, counts: null })],
  };
}

/**
 * Decide to let the brake of a group decide by itself again, or to release everything that is pending.
 *
 * @param order `now` releases what is pending, whether the brake is frozen or not. `cluster` is the cluster's brake,
 *   where another group's is released so: while it is frozen it holds the group back too.
 */
export function releaseBrake(
  row: BrakeRow,
  order: { readonly now: boolean; readonly cluster: BrakeRow | null },
  { actor, message }: By,
): Decided<BrakeEffect, BrakeRefusalReason> {
  const { group, mode, frozen } = row;
  if (order.now && order.cluster !== null && order.cluster.frozen !== null) {
    const holder = order.cluster.frozen.actor;
    const text = `the cluster's brake was frozen by ${holder}, which holds ${group} too: release the cluster first`;
    return refused("BRAKE_CLUSTER_FROZEN", text, { group, actor: holder });
  }
  if (frozen === null && !order.now) {
    const hint =
      mode === "NORMAL"
        ? "it releases by itself"
        : `it is ${mode} because most of its nodes are gone; a release with now set lets go of everything that ` +
          "is pending";
    return refused("BRAKE_NOT_FROZEN", `the brake of ${group} is not frozen: ${hint}`, { group, mode });
  }
  const orders: readonly BrakeEffect[] = order.now ? [{ kind: "release-all", actor, reason: message }] : [];
  if (frozen === null) return { ok: true, effects: orders, events: [] };
  const change = { group, before: "FROZEN", after: mode, reason: "OPERATOR_RELEASED" } as const;
  return {
    ok: true,
    effects: [...orders, { kind: "unfreeze" }],
    events: [brakeEvent({ ...change, actor, message, counts: null })],
  };
}
