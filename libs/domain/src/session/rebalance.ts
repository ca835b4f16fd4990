/** The number of agents connected to one replica. */
export interface ReplicaLoad {
  readonly instance: string;
  /** The address at which agents reach the replica. Replicas behind a load balancer have the same endpoint. */
  readonly endpoint: string;
  readonly sessions: number;
}

/** When a replica moves sessions, and how fast. */
export interface RebalanceLimits {
  /** How far a replica can deviate from its fair share before sessions move, as a fraction of the fair share. */
  readonly tolerance: number;
  /** Deviations of up to this many sessions are always tolerated. */
  readonly leastSessions: number;
  /** The fraction of its sessions that a replica moves per second. */
  readonly partPerSecond: number;
  /** Minimum number of moves per second, even if `partPerSecond` gives fewer. */
  readonly leastPerSecond: number;
  /** Maximum number of moves per second. */
  readonly mostPerSecond: number;
}

/**
 * The default limits. Moving 1 % of the sessions per second removes a surplus of 50 % within a minute, without
 * noticeable load on any replica.
 */
export const DEFAULT_REBALANCE_LIMITS: RebalanceLimits = {
  tolerance: 0.1,
  leastSessions: 10,
  partPerSecond: 0.01,
  leastPerSecond: 5,
  mostPerSecond: 50,
};

/** Why a replica moves sessions or does not. */
export type RebalanceReason =
  /** There is no other replica. */
  | "ALONE"
  /** No replica deviates enough to move sessions. */
  | "WITHIN_TOLERANCE"
  /** The replica has at most its fair share. Other replicas have to move sessions. */
  | "NO_SURPLUS"
  /** The replica has more than its fair share, and some replica deviates beyond the tolerance. */
  | "SURPLUS";

/** What a replica does with its sessions. */
export interface MovePlan {
  readonly reason: RebalanceReason;
  /** How many sessions to move now. */
  readonly moves: number;
  /** The number of sessions that the replica should have. */
  readonly fairShare: number;
  /** Where to move the sessions; empty if all replicas have the same address. */
  readonly targets: readonly MoveTarget[];
}

/** An address to move to. */
export interface MoveTarget {
  readonly endpoint: string;
  /** How many sessions the replicas at this address lack. */
  readonly room: number;
}

/** The input of the plan. */
export interface RebalanceView {
  readonly own: string;
  /** All live replicas, including this one with its current load. */
  readonly loads: readonly ReplicaLoad[];
  /** Number of sessions that were asked to move but are still connected here. */
  readonly leaving: number;
  /**
   * Whether the previous plan moved sessions. If so, moving continues down to the fair share, so that no replica
   * alternates between moving and not moving.
   */
  readonly isMoving: boolean;
  /** Time since the previous plan. */
  readonly elapsedMs: number;
}

/**
 * Plan how many of its surplus sessions a replica moves now. Moving starts if this replica has more than its fair share
 * and any replica deviates beyond the tolerance. It continues down to the fair share. All surpluses together equal all
 * deficits, so replicas that plan independently do not move too much. If several replicas share an address, a move can
 * arrive at any of them, including the replica that it came from. Repeated rounds even out the rest.
 */
export function planMoves(view: RebalanceView, limits: RebalanceLimits): MovePlan {
  const { own, loads, leaving, isMoving } = view;
  const mine = loads.find(({ instance }) => instance === own);
  const total = loads.reduce((sum, { sessions }) => sum + sessions, 0);
  const share = total / Math.max(1, loads.length);
  const fairShare = Math.ceil(share);
  const stay = (reason: RebalanceReason) => ({ reason, moves: 0, fairShare, targets: [] });
  if (mine === undefined || loads.length < 2) return stay("ALONE");
  const surplus = mine.sessions - leaving - fairShare;
  const deviates = loads.some(
    (load) => deviation(load, share, load === mine ? leaving : 0) > toleranceOf(share, limits),
  );
  if (!deviates && !(isMoving && surplus > 0)) return stay("WITHIN_TOLERANCE");
  if (surplus <= 0) return stay("NO_SURPLUS");
  const moves = Math.min(surplus, quota(mine.sessions, view.elapsedMs, limits));
  return { reason: "SURPLUS", moves, fairShare, targets: roomsOf(mine, loads, share) };
}

/**
 * How far a replica can deviate from its share. If a load balancer distributes agents at random, deviations of up to
 * three times the square root of the share are normal.
 */
function toleranceOf(share: number, { tolerance, leastSessions }: RebalanceLimits): number {
  return Math.max(leastSessions, share * tolerance, 3 * Math.sqrt(share));
}

function deviation({ sessions }: ReplicaLoad, share: number, leaving: number): number {
  return Math.abs(sessions - leaving - share);
}

function quota(sessions: number, elapsedMs: number, limits: RebalanceLimits): number {
  const { partPerSecond, leastPerSecond, mostPerSecond } = limits;
  const perSecond = Math.min(mostPerSecond, Math.max(leastPerSecond, sessions * partPerSecond));
  return Math.max(1, Math.floor((perSecond * elapsedMs) / 1000));
}

/** How many sessions the other replicas at each address lack. */
function roomsOf(mine: ReplicaLoad, loads: readonly ReplicaLoad[], share: number): readonly MoveTarget[] {
  if (loads.every(({ endpoint }) => endpoint === mine.endpoint)) return [];
  const rooms = new Map<string, number>();
  for (const { instance, endpoint, sessions } of loads) {
    const room = Math.max(0, share - sessions);
    if (instance !== mine.instance && room > 0) {
      rooms.set(endpoint, (rooms.get(endpoint) ?? 0) + room);
    }
  }
  return [...rooms].map(([endpoint, room]) => ({ endpoint, room }));
}

/**
 * Choose where to move one session. Addresses with more room are chosen more often, so that independent replicas do not
 * all choose the same address. Null if there are no targets.
 *
 * @param random01 a random number from 0 to less than 1.
 */
export function chooseTarget(targets: readonly MoveTarget[], random01: number): string | null {
  const total = targets.reduce((sum, { room }) => sum + room, 0);
  let left = random01 * total;
  for (const { endpoint, room } of targets) {
    left -= room;
    if (left < 0) return endpoint;
  }
  return targets[0]?.endpoint ?? null;
}
