import {
  adoptSession,
  type Connection,
  type ConnectionState,
  connectionAfter,
  connectionEvent,
  DEFAULT_HEALTH_POLICY,
  deriveScheduling,
  type EventInterest,
  type HealthState,
  healthAfter,
  healthEvent,
  isDuplicateOver,
  isOfInterest,
  isSameAgent,
  latestPair,
  lossAfterRelease,
  type Membership,
  MOST_SIGHTINGS,
  type NewEvent,
  NO_LOSS,
  planConditions,
  planOpening,
  planTransition,
  reactionsAllowedEvent,
  type Stated,
  sessionMovedEvent,
} from "@rollcall/domain";
import type { StoredOpening } from "@rollcall/health/parts";
import type { AdoptedNode, EventRow, Lease, OwnedSession, Transition } from "@rollcall/store";
import type { Invariants, SimulatedSession } from "./invariants.ts";
import { type BrokenRule, indexOf, nodeIdOf } from "./simulation-options.ts";

const MOST_EVENTS_KEPT = 50_000;
const BY_SYSTEM = { actor: "system", atMs: 0 };
const APPROVED: Membership = { state: "APPROVED", sinceMs: 0, reason: "SIMULATED", message: "", actor: "system" };

/**
 * The simulated store: sessions, leases and the log. Its methods have the same conditions as the store's statements,
 * and each is one atomic transaction.
 */
export class SimulatedStore {
  readonly sessions: readonly SimulatedSession[];
  /** Leases, keyed by instance. */
  readonly leases = new Map<string, { counter: number; sessions: number }>();
  readonly #owned = new Map<string, Set<SimulatedSession>>();
  readonly #invariants: Invariants;
  readonly #broken: BrokenRule | undefined;
  readonly #nowMs: () => number;
  #losses = 0;
  #events: EventRow[] = [];
  #revision = 0;

  /** @param nowMs the store's wall time. */
  constructor(
    agents: number,
    {
      invariants,
      broken,
      nowMs,
    }: {
      readonly invariants: Invariants;
      readonly broken: BrokenRule | undefined;
      readonly nowMs: () => number;
    },
  ) {
    this.sessions = Array.from({ length: agents }, (_, node) => ({
      node,
      epoch: 0,
      replica: null,
      connection: connectionAfter("registered", BY_SYSTEM),
      health: healthAfter({ kind: "registered" }, BY_SYSTEM),
      history: { outages: [], flappingSinceMs: null },
      loss: NO_LOSS,
      holds: [],
      machines: [],
      isDuplicated: false,
    }));
    this.#invariants = invariants;
    this.#broken = broken;
    this.#nowMs = nowMs;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Increase a lease's counter. Returns null when the lease was ended. */
  renew(instance: string, sessions: number): number | null {
    const lease = this.leases.get(instance);
    if (lease === undefined) return null;
    lease.counter += 1;
    lease.sessions = sessions;
    return lease.counter;
  }

  /** Take a lease. */
  take(instance: string): number {
    const counter = (this.leases.get(instance)?.counter ?? 0) + 1;
    this.leases.set(instance, { counter, sessions: 0 });
    return counter;
  }

  listLeases(): readonly Lease[] {
    return [...this.leases].map(([instance, { counter }]) => {
      return { name: instance, instance, service: "health", address: "", counter };
    });
  }

  /**
   * End another process's lease if its counter has not changed since it was read. Returns whether the lease ended.
   */
  expire({ instance, counter }: Lease): boolean {
    return this.leases.get(instance)?.counter === counter && this.leases.delete(instance);
  }

  /**
   * Open a session with the next epoch. `readRevision` is the store's revision when the call began: a call reads the
   * membership first, and can then wait for the node's row.
   */
  open(
    { nodeId, instanceId }: { readonly nodeId: string; readonly instanceId: string },
    instance: string,
    readRevision: number,
  ): StoredOpening {
    const session = this.#session(nodeId);
    const { replica, health: detectedHealth } = session;
    const { isTakenOver, isDuplicated } = this.#sight(session, instanceId, instance);
    const before = this.#revision;
    this.#give(session, instance, session.epoch + 1);
    const actor = actorOf(instance);
    if (session.connection.state === "CONNECTED" && replica !== null && replica !== instance) {
      this.#append(sessionMovedEvent({ subject: nodeId, before: replica, after: instance }));
    }
    const displaces = replica === null || replica === instance ? "" : replica;
    this.#setConnection(session, connectionAfter("opened", { actor, atMs: 0 }), displaces);
    return {
      ...{ outcome: "OPENED", nodeId, epoch: session.epoch, membership: APPROVED, marked: false },
      previous: { replicaId: replica, bootId: null, machineFingerprint: null },
      ...{ isTakenOver, isDuplicated },
      detectedHealth,
      infoDigest: null,
      revision: BigInt(readRevision),
      openedRevision: BigInt(this.#revision > before ? this.#revision : readRevision),
    };
  }

  /** Write observations made under epochs that are still current. Returns the nodes that the replica still owns. */
  write(instance: string, items: readonly Transition[]): ReadonlySet<string> {
    const held = new Set<string>();
    for (const item of items) {
      const { nodeId, epoch } = item;
      const session = this.#session(nodeId);
      const isCurrent = session.replica === instance && session.epoch === epoch;
      if (!isCurrent && this.#broken !== "epoch-checked") continue;
      this.#invariants.onWrite(session, instance, epoch);
      held.add(nodeId);
      this.#observe(session, item);
    }
    return held;
  }

  /** Update outages and holds of a replica's nodes, as a real replica does regularly. */
  settleConditions(instance: string): void {
    const nowMs = this.#nowMs();
    for (const session of this.#owned.get(instance) ?? []) {
      const { node, epoch, history, holds, machines } = session;
      if (isDuplicateOver(machines, nowMs)) session.isDuplicated = false;
      if (history.flappingSinceMs === null && holds.length === 0 && !session.isDuplicated) continue;
      const planned = planConditions(
        {
          ...{ id: nodeIdOf(node), session: { epoch, replicaId: instance, address: null }, history, holds },
          ...{ scheduling: deriveScheduling(holds, 0), info: null },
          ...{ missingHardware: [], gpuTroubles: [], rebootedAtMs: null, suspectedReboot: null },
          duplicate: session.isDuplicated ? latestPair(machines) : null,
        },
        { nodeId: nodeIdOf(node), epoch, policy: DEFAULT_HEALTH_POLICY, gpuTroubles: null },
        { replicaId: instance, nowMs },
      );
      for (const effect of planned?.effects ?? []) {
        if (effect.kind === "holds") session.holds = effect.holds;
        else if (effect.kind === "outages") session.history = effect.history;
      }
      this.append(planned?.events ?? []);
    }
  }

  /** Release the reaction to a loss, unless the node is back or was lost again. */
  release(nodeId: string, lossNumber: number): void {
    const session = this.#session(nodeId);
    if (session.loss.reaction !== "PENDING" || session.loss.number !== lossNumber) return;
    session.loss = lossAfterRelease(session.loss, true);
    const { group, sinceMs } = session.loss;
    const loss = { group: group ?? "", lostSinceMs: sinceMs ?? 0 };
    const why = { reason: "NO_STORM", actor: "replica:brake", message: "" } as const;
    this.#append(reactionsAllowedEvent({ subject: nodeId, brake: "NORMAL", ...loss, ...why }));
  }

  /**
   * Adopt nodes of replicas without a lease, with the next epoch and as DISCONNECTED. Returns none if the adopting
   * replica has no lease.
   */
  adopt(instance: string, limit: number): readonly AdoptedNode[] {
    const taken: AdoptedNode[] = [];
    if (!this.leases.has(instance)) return taken;
    for (const [previousReplicaId, sessions] of this.#owned) {
      if (this.leases.has(previousReplicaId)) continue;
      for (const session of sessions) {
        if (taken.length === limit) return taken;
        const { connection: before } = session;
        const orphan = { nodeId: nodeIdOf(session.node), connection: before, previousReplicaId };
        const adoption = adoptSession(orphan, { replicaId: instance, atMs: 0 });
        const fence = this.#broken === "adoption-fences" ? 0 : 1;
        this.#give(session, instance, session.epoch + fence);
        // Write the session only if there is a decision, as the real store does.
        if (adoption !== null) {
          session.connection = adoption.connection;
          this.#append(adoption.event);
          this.#told(session.node, "connection", before, adoption.connection);
        }
        taken.push({ ...toHeld(session), previousReplicaId, connectionBefore: before.state });
      }
    }
    return taken;
  }

  /** The nodes among these ids that a replica owns; with null, all of its nodes. */
  heldBy(instance: string, nodeIds: readonly string[] | null): readonly OwnedSession[] {
    const sessions = nodeIds?.map((id) => this.#session(id)) ?? [...(this.#owned.get(instance) ?? [])];
    return sessions.filter(({ replica }) => replica === instance).map(toHeld);
  }

  /** Append events of other services. */
  append(events: readonly NewEvent[]): void {
    for (const event of events) this.#append(event);
  }

  /** The events after a revision that a follower wants, in order. */
  eventsAfter(revision: number, interest: EventInterest): readonly EventRow[] {
    if (revision === this.#revision) return [];
    const missing = this.#revision - revision;
    if (missing > this.#events.length) throw new Error("the log does not go back that far");
    return this.#events.slice(this.#events.length - missing).filter((event) => isOfInterest(interest, event));
  }

  /** Delete events that every process has read. */
  compact(readByAll: number): void {
    if (this.#events.length < MOST_EVENTS_KEPT) return;
    this.#events = this.#events.slice(this.#events.length - (this.#revision - readByAll));
  }

  /** Record the agent that opens a session, and whether two agents use the node's identity. */
  #sight(session: SimulatedSession, instanceId: string, replicaId: string) {
    const { node, machines: before, connection, replica } = session;
    const nowMs = this.#nowMs();
    if (isDuplicateOver(before, nowMs)) session.isDuplicated = false;
    const agent = { instanceId, bootId: "", fingerprint: "", address: "", atMs: nowMs };
    const sighting = { ...agent, tookOver: connection.state === "CONNECTED" };
    const last = before.at(-1);
    const isSame = last !== undefined && isSameAgent(last, sighting);
    session.machines = isSame ? before : [...before, sighting].slice(-MOST_SIGHTINGS);
    const nodeId = nodeIdOf(node);
    const plan = planOpening({
      ...{ nodeId, replicaId, bootId: "", machineFingerprint: "", key: "", retiredKey: null, nowMs },
      machines: session.machines,
      before: {
        ...{ connection, replicaId: replica, bootId: null, machineFingerprint: null, machines: before },
        ...{ isDuplicated: session.isDuplicated, suspectedReboot: null },
      },
    });
    session.isDuplicated ||= plan.isDuplicated;
    const { isDuplicated } = session;
    this.#invariants.onOpened(node, instanceId, { isDuplicated, isNoticed: plan.isDuplicated });
    return { isTakenOver: plan.isTakenOver, isDuplicated };
  }

  #session(nodeId: string): SimulatedSession {
    return this.sessions[indexOf(nodeId)] as SimulatedSession;
  }

  #give(session: SimulatedSession, instance: string, epoch: number): void {
    const { replica: before } = session;
    if (before !== null) {
      const others = this.#owned.get(before);
      others?.delete(session);
      if (others?.size === 0) this.#owned.delete(before);
    }
    const own = this.#owned.get(instance) ?? new Set();
    this.#owned.set(instance, own.add(session));
    session.replica = instance;
    session.epoch = epoch;
    this.#invariants.onOwner(session.node, epoch, instance);
  }

  #setConnection(session: SimulatedSession, after: Connection, displaces = ""): void {
    const before = session.connection;
    session.connection = this.#isSame(before, after) ? before : after;
    if (this.#isSame(before, after)) return;
    this.#append(connectionEvent({ subject: nodeIdOf(session.node), before, after, displaces }));
    this.#told(session.node, "connection", before, after);
  }

  /** Write a transition as the shipped code decides. */
  #observe(session: SimulatedSession, item: Transition): void {
    const { node, connection, health } = session;
    const recorded = { nodeId: item.nodeId, detectedHealth: health, marked: false };
    const planned = planTransition({ ...recorded, connection, history: session.history, loss: session.loss }, item, {
      nowMs: this.#nowMs(),
      mayHaveReaction: true,
    });
    if (planned.after !== null) {
      const { loss } = planned.after;
      if (loss.number === "next") this.#losses += 1;
      const number = loss.number === "next" ? this.#losses : loss.number;
      Object.assign(session, { ...planned.after, loss: { ...loss, number } });
    }
    const isBroken = this.#broken === "one-event" && item.health !== undefined;
    if (isBroken && health.state === session.health.state) {
      this.#append(healthEvent({ subject: item.nodeId, before: health, after: session.health }));
      this.#told(node, "health", health, session.health);
    }
    for (const event of planned.events) this.#append(event);
    if (connection.state !== session.connection.state) this.#told(node, "connection", connection, session.connection);
    if (health.state !== session.health.state) this.#told(node, "health", health, session.health);
  }

  #isSame(before: Stated<string>, after: Stated<string>): boolean {
    return before.state === after.state && this.#broken !== "one-event";
  }

  #told(
    node: number,
    kind: "connection" | "health",
    { state: before }: Stated<ConnectionState | HealthState>,
    { state: after, actor }: Stated<ConnectionState | HealthState>,
  ): void {
    this.#invariants.onEvent({ node, kind, before, after, actor });
  }

  #append(event: NewEvent): void {
    this.#revision += 1;
    this.#events.push({ ...event, revision: BigInt(this.#revision), id: String(this.#revision), atMs: 0 });
  }
}

function toHeld({ node, epoch, connection, health: detectedHealth }: SimulatedSession): OwnedSession {
  return { nodeId: nodeIdOf(node), epoch, connection, detectedHealth, marked: false, membership: APPROVED };
}

function actorOf(instance: string): string {
  return `replica:${instance}`;
}
