import type { Decided } from "../decided.ts";
import { refused } from "../refusal.ts";
import { stateWords } from "../state-words.ts";
import { BRAKE_CLUSTER } from "./brake.ts";
import { brakeEvent } from "./brake-events.ts";
import type { BrakeRow } from "./brake-plan.ts";

/** What to write about a brake. The caller has locked the brake's row. */
export type BrakeEffect =
  | { readonly kind: "freeze"; readonly actor: string; readonly reason: string }
  | { readonly kind: "unfreeze" }
  /** Release every reaction that is pending now. */
  | { readonly kind: "release-all"; readonly actor: string; readonly reason: string };

/** Why a brake command is refused. */
export type BrakeRefusalReason = "BRAKE_ALREADY_FROZEN" | "BRAKE_NOT_FROZEN" | "BRAKE_CLUSTER_FROZEN";

interface By {
  readonly actor: string;
  /** The operator's explanation; may be empty. */
  readonly message: string;
}

/**
 * Whether an operator's freeze holds back the reactions of a group: its own, or that of the cluster. `group` is "" for
 * nodes without a group.
 */
export function isHeldByFreeze(rows: readonly BrakeRow[], group: string): boolean {
  return rows.some((row) => row.frozen !== null && (row.group === group || row.group === BRAKE_CLUSTER));
}

/** Decide to freeze a group's brake, so that it holds back every reaction. */
export function freezeBrake(row: BrakeRow, { actor, message }: By): Decided<BrakeEffect, BrakeRefusalReason> {
  const { group, mode, frozen } = row;
  if (frozen !== null) {
    const why = frozen.reason === "" ? "" : `: ${frozen.reason}`;
    const text = `the brake of ${group} was already frozen by ${frozen.actor}${why}`;
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
 * Decide to return a group's brake to automatic control, or to release every pending reaction of the group.
 *
 * @param order `now` releases every pending reaction, even if the brake is not frozen. `cluster` is the cluster's
 *   brake, or null if `row` is the cluster's brake. While the cluster's brake is frozen, releasing another group now is
 *   refused.
 */
export function releaseBrake(
  row: BrakeRow,
  order: { readonly now: boolean; readonly cluster: BrakeRow | null },
  { actor, message }: By,
): Decided<BrakeEffect, BrakeRefusalReason> {
  const { group, mode, frozen } = row;
  if (order.now && order.cluster !== null && order.cluster.frozen !== null) {
    const holder = order.cluster.frozen.actor;
    const text = `the cluster's brake, frozen by ${holder}, also holds ${group}; release the cluster's brake first`;
    return refused("BRAKE_CLUSTER_FROZEN", text, { group, actor: holder });
  }
  if (frozen === null && !order.now) {
    const hint =
      mode === "NORMAL"
        ? "it releases reactions automatically"
        : `it is ${stateWords(mode)} because most of its nodes are gone; use --now to release all pending reactions`;

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
