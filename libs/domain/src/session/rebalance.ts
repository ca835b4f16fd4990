/** How many agents one replica holds. */
export interface ReplicaLoad {
  readonly instance: string;
  /** Where agents reach it. Replicas behind one address have the same. */
  readonly endpoint: string;
  readonly sessions: number;
}

/** How fast, and from when on, sessions are moved. */
export interface RebalanceLimits {
  /** Deviation from the fair share that is left alone, as a part of that share. */
  readonly tolerance: number;
  /** The least deviation that is not left alone, in sessions. */
  readonly leastSessions: number;
  /** Part of its sessions that a replica asks to move in a second. */
  readonly partPerSecond: number;
  /** It asks so many all the same. */
  readonly leastPerSecond: number;
  /** Most that it asks in a second. */
  readonly mostPerSecond: number;
}

/** A hundredth of the sessions a second moves a surplus of a half within a minute, and no replica notices it. */
export const DEFAULT_REBALANCE_LIMITS: RebalanceLimits = {
  tolerance: 0.1,
  leastSessions: 10,
  partPerSecond: 0.01,
  leastPerSecond: 5,
  mostPerSecond: 50,
};

/** Why a replica moves sessions, or why it does not. */
export type RebalanceReason =
  /** There is no other replica. */
  | "ALONE"
  /** No replica deviates so much that a move would be worth it. */
  | "WITHIN_TOLERANCE"
  /** The replica has its fair share or less: others have to give. */
  | "NO_SURPLUS"
  /** It has too many, or another one has too few. */
  | "SURPLUS";

/** What a replica does about its sessions. */
export interface MovePlan {
  readonly reason: RebalanceReason;
  /** How many sessions to ask to move now. */
  readonly moves: number;
  /** What the replica should have, in sessions. */
  readonly fairShare: number;
  /** Where to; nothing where all replicas have the same address. */
  readonly targets: readonly MoveTarget[];
}

/** An address to move to. */
export interface MoveTarget {
  readonly endpoint: string;
  /** How many sessions the replicas there have less than their share. */
  readonly room: number;
}

/** What the plan is made from. */
export interface RebalanceView {
  readonly own: string;
  /** All replicas that are alive, the own one among them, which counts as it is now. */
  readonly loads: readonly ReplicaLoad[];
  /** Sessions that were asked to move and are still here. */
  readonly leaving: number;
  /**
   * Whether the plan before this one moved sessions: what was begun goes on to the fair share, so that no replica stops
   * and starts.
   */
  readonly isMoving: boolean;
  /** Time since the plan before this one. */
  readonly elapsedMs: number;
}

/**
 * Plan which part of a replica's surplus moves now. It begins when this replica has more than its fair share and any
 * replica, this one or another, deviates beyond the tolerance; it goes on down to the fair share. All surpluses
 * together are all deficits together, so replicas that plan by themselves do not give more than is missing. Where an
 * address stands for many replicas, moves land anywhere, on the replica that asked too; each round then moves a part of
 * what is left.
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
 * How far a replica may be off its share: chance alone, where a balancer hands out agents, moves it by three roots of
 * that share.
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

/** The room that other replicas have below their share, by address. */
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
 * Choose where one session moves: an address with more room is chosen more often, so that replicas that choose by
 * themselves do not all choose the same. Null where none is better than another.
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
