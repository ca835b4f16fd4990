import type { ConnectionState, HealthState } from "@rollcall/domain";
import type { Invariants } from "./invariants.ts";
import type { BrokenRule } from "./simulation-options.ts";

/** A node's session as the record has it. */
export interface RecordedSession {
  readonly node: number;
  epoch: number;
  /** The instance that owns it. */
  replica: string | null;
  connection: ConnectionState;
  health: HealthState;
}

/** One event of the simulated log. */
export interface SimulatedEvent {
  readonly revision: number;
  readonly node: number;
  readonly kind: "connection" | "health";
  /** The instance that wrote it. */
  readonly actor: string;
}

/** What a replica observed of a node. */
export interface SimulatedTransition {
  readonly node: number;
  readonly epoch: number;
  readonly connection: ConnectionState | null;
  readonly health: HealthState | null;
}

/** What a Hello led to. */
export interface SimulatedOpening {
  readonly epoch: number;
  readonly previousReplica: string | null;
  readonly health: HealthState;
  /** The membership, which is not simulated, would have been read as of this revision. */
  readonly revision: number;
}

const MOST_EVENTS_KEPT = 50_000;

/**
 * The record: sessions, leases and the log, with the conditions that the store's statements have. Each method is one
 * transaction: all of it or nothing, at one moment.
 */
export class SimulatedRecord {
  readonly sessions: readonly RecordedSession[];
  readonly leases = new Map<string, number>();
  readonly #owned = new Map<string, Set<RecordedSession>>();
  readonly #invariants: Invariants;
  readonly #broken: BrokenRule | undefined;
  #events: SimulatedEvent[] = [];
  #revision = 0;

  constructor(agents: number, invariants: Invariants, broken: BrokenRule | undefined) {
    this.sessions = Array.from({ length: agents }, (_, node) => ({
      node,
      epoch: 0,
      replica: null,
      connection: "DISCONNECTED",
      health: "UNKNOWN",
    }));
    this.#invariants = invariants;
    this.#broken = broken;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Raise one's counter, or take one's lease again when it was ended. Tells whether it had been held all along. */
  renew(instance: string): boolean {
    const counter = this.leases.get(instance);
    this.leases.set(instance, (counter ?? 0) + 1);
    return counter !== undefined;
  }

  /** End another's lease, provided that its counter is the one observed. */
  expire(instance: string, counter: number): void {
    if (this.leases.get(instance) === counter) this.leases.delete(instance);
  }

  /** Open a session: the next epoch, CONNECTED. */
  open(node: number, instance: string): SimulatedOpening {
    const session = this.#session(node);
    const { replica: previousReplica, health } = session;
    const { revision } = this;
    this.#give(session, instance, session.epoch + 1);
    this.#setConnection(session, "CONNECTED", instance);
    return { epoch: session.epoch, previousReplica, health, revision };
  }

  /**
   * Write what was observed under the epochs that are still current. Answers the nodes that still belong to the
   * replica.
   */
  write(instance: string, items: readonly SimulatedTransition[]): ReadonlySet<number> {
    const held = new Set<number>();
    for (const item of items) {
      const session = this.#session(item.node);
      const isCurrent = session.replica === instance && session.epoch === item.epoch;
      if (!isCurrent && this.#broken !== "epoch-checked") continue;
      this.#invariants.onWrite(session, instance, item.epoch);
      held.add(item.node);
      if (item.connection !== null) this.#setConnection(session, item.connection, instance);
      if (item.health !== null) this.#setHealth(session, item.health, instance);
    }
    return held;
  }

  /** Take over nodes of replicas without a lease: next epoch, DISCONNECTED. None for who has no lease itself. */
  adopt(instance: string, limit: number): readonly (RecordedSession & { readonly from: string })[] {
    const taken: (RecordedSession & { readonly from: string })[] = [];
    if (!this.leases.has(instance)) return taken;
    for (const [from, sessions] of this.#owned) {
      if (this.leases.has(from)) continue;
      for (const session of sessions) {
        if (taken.length === limit) return taken;
        const fence = this.#broken === "adoption-fences" ? 0 : 1;
        this.#give(session, instance, session.epoch + fence);
        this.#setConnection(session, "DISCONNECTED", instance);
        taken.push({ ...session, from });
      }
    }
    return taken;
  }

  /** What belongs to a replica. */
  heldBy(instance: string): readonly RecordedSession[] {
    return [...(this.#owned.get(instance) ?? [])].map((session) => ({ ...session }));
  }

  /** The events above a revision, in order. */
  eventsAfter(revision: number): readonly SimulatedEvent[] {
    if (revision === this.#revision) return [];
    const missing = this.#revision - revision;
    if (missing > this.#events.length) throw new Error("the log does not go back that far");
    return this.#events.slice(this.#events.length - missing);
  }

  /** Forget events that everybody has read. */
  compact(readByAll: number): void {
    if (this.#events.length < MOST_EVENTS_KEPT) return;
    this.#events = this.#events.slice(this.#events.length - (this.#revision - readByAll));
  }

  #session(node: number): RecordedSession {
    return this.sessions[node] as RecordedSession;
  }

  #give(session: RecordedSession, instance: string, epoch: number): void {
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

  #setConnection(session: RecordedSession, after: ConnectionState, actor: string): void {
    const before = session.connection;
    if (before === after && this.#broken !== "one-event") return;
    session.connection = after;
    this.#append(session.node, "connection", actor);
    this.#invariants.onEvent({ node: session.node, kind: "connection", before, after, actor });
  }

  #setHealth(session: RecordedSession, after: HealthState, actor: string): void {
    const before = session.health;
    if (before === after && this.#broken !== "one-event") return;
    session.health = after;
    this.#append(session.node, "health", actor);
    this.#invariants.onEvent({ node: session.node, kind: "health", before, after, actor });
  }

  #append(node: number, kind: SimulatedEvent["kind"], actor: string): void {
    this.#revision += 1;
    this.#events.push({ revision: this.#revision, node, kind, actor });
  }
}
