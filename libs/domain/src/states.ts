/** The role of a node: a process of the control plane, or a machine that takes work. */
export type NodeType = "ORCHESTRATOR" | "COMPUTE";

/** One state of a node with its time, reason and actor. */
export interface Stated<State extends string> {
  readonly state: State;
  /** Wall time in milliseconds since 1970, for display only: no decision uses it. */
  readonly sinceMs: number;
  /** For machines, SCREAMING_SNAKE. */
  readonly reason: string;
  /** The message for people; may be empty. */
  readonly message: string;
  /** Who caused the state: "system", "node:<id>", "token:<id>" or "replica:<id>". */
  readonly actor: string;
}

/** What the operator decided about a node. */
export type MembershipState = "PENDING" | "APPROVED" | "REJECTED";
/** Whether the node has a session with a health replica. */
export type ConnectionState = "CONNECTED" | "DISCONNECTED";
/** What the failure detector decided. */
export type HealthState = "HEALTHY" | "UNHEALTHY" | "UNKNOWN";
/** Whether new work can be placed on the node; derived from its holds, never set directly. */
export type SchedulingState = "ELIGIBLE" | "INELIGIBLE" | "DRAINING" | "DRAINED" | "UNCONFIRMED";

/** Whether a node is allowed in the cluster, as the operator decided. */
export type Membership = Stated<MembershipState>;
/** Whether a node is connected. An orchestrator is connected while it holds its lease. */
export type Connection = Stated<ConnectionState>;
/** A node's health: either as detected, or effective, that is, with an operator's mark applied. */
export type Health = Stated<HealthState>;

/**
 * A reason why a node gets no new work. Only the component that owns a kind adds and removes holds of this kind.
 */
export type HoldKind = "OPERATOR" | "FLAPPING" | "HARDWARE" | "IDENTITY" | "DRAIN" | "CONDITION";

/** A hold in effect. A node has at most one hold of each kind, so removing one leaves the others. */
export interface Hold {
  readonly kind: HoldKind;
  readonly sinceMs: number;
  readonly message: string;
  readonly actor: string;
  /** When the hold ends automatically; absent for never. Only for OPERATOR. */
  readonly untilMs?: number;
  /** Present if the work that the drain covered has ended. Only for DRAIN. */
  readonly drained?: true;
  /**
   * Present if the drain has finished but the node has not confirmed the end of all executions that it covered.
   * Only for DRAIN.
   */
  readonly unconfirmed?: true;
}

/** Whether a node can get new work, and the holds that prevent it. */
export interface Scheduling extends Stated<SchedulingState> {
  /** The node's holds, oldest first; empty if the node is eligible. */
  readonly holds: readonly Hold[];
}

/** An operator's mark: the node counts as unhealthy, whatever it sends. */
export interface Mark {
  readonly sinceMs: number;
  readonly message: string;
  readonly actor: string;
}

const HOLD_REASONS: Readonly<Record<HoldKind, string>> = {
  OPERATOR: "OPERATOR_CORDONED",
  FLAPPING: "NODE_FLAPPING",
  HARDWARE: "HARDWARE_IN_DOUBT",
  IDENTITY: "DUPLICATE_IDENTITY",
  DRAIN: "NODE_DRAINING",
  CONDITION: "NODE_CONDITION",
};
const DRAINED_REASON = "NODE_DRAINED";
const UNCONFIRMED_REASON = "DRAIN_UNCONFIRMED";

/**
 * Derive a node's eligibility from its holds. An ineligible node gets the reason, message and actor of its oldest
 * hold. A draining or drained node gets those of its drain.
 *
 * @param noHoldSinceMs the time to show for an eligible node: when its last hold was removed, or when it was
 *   created.
 */
export function deriveScheduling(holds: readonly Hold[], noHoldSinceMs: number): Scheduling {
  const oldestFirst = holds.toSorted((left, right) => left.sinceMs - right.sinceMs);
  const [oldest] = oldestFirst;
  if (oldest === undefined) {
    return {
      state: "ELIGIBLE",
      sinceMs: noHoldSinceMs,
      reason: "NO_HOLD",
      message: "",
      actor: "system",
      holds: [],
    };
  }
  const drain = oldestFirst.find(({ kind }) => kind === "DRAIN");
  const { kind, sinceMs, message, actor } = drain ?? oldest;
  return {
    state: drain === undefined ? "INELIGIBLE" : drainState(drain),
    sinceMs,
    reason: drain?.unconfirmed ? UNCONFIRMED_REASON : drain?.drained ? DRAINED_REASON : HOLD_REASONS[kind],
    message,
    actor,
    holds: oldestFirst,
  };
}

function drainState({ drained, unconfirmed }: Hold): SchedulingState {
  if (unconfirmed === true) return "UNCONFIRMED";
  return drained === true ? "DRAINED" : "DRAINING";
}

/**
 * Add a hold. It replaces a hold of the same kind, but keeps the `sinceMs` of that hold. Returns the same array
 * if nothing changes, so callers can compare by identity.
 */
export function placeHold(holds: readonly Hold[], hold: Hold): readonly Hold[] {
  const present = holds.find(({ kind }) => kind === hold.kind);
  if (present === undefined) {
    return [...holds, hold];
  }
  const isSame =
    present.message === hold.message &&
    present.actor === hold.actor &&
    present.untilMs === hold.untilMs &&
    present.drained === hold.drained &&
    present.unconfirmed === hold.unconfirmed;
  if (isSame) return holds;
  const renewed = { ...hold, sinceMs: present.sinceMs };
  return holds.map((other) => (other === present ? renewed : other));
}

/** Remove the hold of one kind and keep the others. Returns the same array if there is no hold of this kind. */
export function liftHold(holds: readonly Hold[], kind: HoldKind): readonly Hold[] {
  const rest = holds.filter((hold) => hold.kind !== kind);
  return rest.length === holds.length ? holds : rest;
}

/** The effective health: an operator's mark overrides the failure detector. */
export function effectiveHealth(detected: Health, mark: Mark | null): Health {
  if (mark === null) return detected;
  return {
    state: "UNHEALTHY",
    sinceMs: mark.sinceMs,
    reason: "OPERATOR_MARKED",
    message: mark.message,
    actor: mark.actor,
  };
}

/**
 * Whether a node matches a status filter. Health values match only compute nodes, connection values any node.
 *
 * @param node its `health` is the effective health.
 */
export function hasStatus(
  node: { readonly type: NodeType; readonly connection: Connection; readonly health: Health },
  status: ConnectionState | HealthState,
): boolean {
  if (status === node.connection.state) return true;
  return node.type === "COMPUTE" && status === node.health.state;
}

/** Who gave a command, why, and when. */
export interface CommandSource {
  readonly actor: string;
  /** The actor's reason; may be empty. */
  readonly message: string;
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}
