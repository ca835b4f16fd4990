/** What a node is: a process of the control plane itself, or a machine that takes work. */
export type NodeType = "ORCHESTRATOR" | "COMPUTE";

/** One state of a node with its time, reason and actor. */
export interface Stated<State extends string> {
  readonly state: State;
  /** Wall time in milliseconds since 1970, for display only: nothing is decided by it. */
  readonly sinceMs: number;
  /** For machines, SCREAMING_SNAKE. */
  readonly reason: string;
  /** For people; may be empty. */
  readonly message: string;
  /** Who caused it: "system", "node:<id>", "token:<id>" or "replica:<id>". */
  readonly actor: string;
}

/** What the operator decided about a node. */
export type MembershipState = "PENDING" | "APPROVED" | "REJECTED";
/** Whether a health replica holds the node's stream. */
export type ConnectionState = "CONNECTED" | "DISCONNECTED";
/** What the failure detector concluded. */
export type HealthState = "HEALTHY" | "UNHEALTHY" | "UNKNOWN";
/** Whether new work may be placed; derived from holds, never set. */
export type SchedulingState = "ELIGIBLE" | "INELIGIBLE" | "DRAINING" | "DRAINED" | "UNCONFIRMED";

/** Whether a node may belong, as the operator decided. */
export type Membership = Stated<MembershipState>;
/** Whether a node is connected. An orchestrator is, while its lease is held. */
export type Connection = Stated<ConnectionState>;
/** How well a node is: as detected, or effective where an operator's mark is included. */
export type Health = Stated<HealthState>;

/** A cause for which a node takes no new work. Each kind is placed and lifted by the one part that owns it. */
export type HoldKind = "OPERATOR" | "FLAPPING" | "HARDWARE" | "IDENTITY" | "DRAIN" | "CONDITION";

/** A hold that is in force. A node has at most one of each kind, so lifting one cause never undoes another. */
export interface Hold {
  readonly kind: HoldKind;
  readonly sinceMs: number;
  readonly message: string;
  readonly actor: string;
  /** When it is lifted by itself; absent for never. Only of OPERATOR. */
  readonly untilMs?: number;
  /** The work that it concerns has ended. Only of DRAIN. */
  readonly drained?: true;
  /** The drain is over, and its node has not confirmed the end of all that it concerned. Only of DRAIN. */
  readonly unconfirmed?: true;
}

/** Whether a node may be given new work, with the holds that say so. */
export interface Scheduling extends Stated<SchedulingState> {
  /** What keeps the node from being eligible, oldest first; empty when it is eligible. */
  readonly holds: readonly Hold[];
}

/** An operator's word that a node is unhealthy, whatever it sends. */
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
 * Tell whether a node is eligible, from its holds alone. An ineligible node carries the reason, message and actor of
 * its oldest hold, one that is drained those of its drain.
 *
 * @param noHoldSinceMs since when there has been no hold, shown for an eligible node: when the last one was lifted,
 *   or when the node was created.
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
 * Place a hold. One of the same kind that is already there keeps its `sinceMs` and takes everything else of the new
 * one. The same array comes back when nothing changes, so the caller can tell by identity.
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

/** Lift the hold of one kind and leave the others. The same array comes back when there was none. */
export function liftHold(holds: readonly Hold[], kind: HoldKind): readonly Hold[] {
  const rest = holds.filter((hold) => hold.kind !== kind);
  return rest.length === holds.length ? holds : rest;
}

/** The health that is shown: an operator's mark wins over what the detector concluded. */
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
 * Tell whether a listing that is filtered by a status shows a node. Words of health find compute nodes, words of
 * connection any node.
 *
 * @param node its `health` is the effective one, a mark included.
 */
export function hasStatus(
  node: { readonly type: NodeType; readonly connection: Connection; readonly health: Health },
  status: ConnectionState | HealthState,
): boolean {
  if (status === node.connection.state) return true;
  return node.type === "COMPUTE" && status === node.health.state;
}

/**
 * Tell whether a node may take work. Nothing else decides this.
 *
 * @param node its `health` is the effective one, a mark included.
 */
export function mayTakeWork(node: {
  readonly type: NodeType;
  readonly membership: Membership;
  readonly health: Health;
  readonly scheduling: Scheduling;
}): boolean {
  return (
    node.type === "COMPUTE" &&
    node.membership.state === "APPROVED" &&
    node.health.state === "HEALTHY" &&
    node.scheduling.state === "ELIGIBLE"
  );
}

/** Who gives a command, why, and when. */
export interface CommandSource {
  readonly actor: string;
  /** The reason in the actor's own words; may be empty. */
  readonly message: string;
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}
