import {
  type AgentSighting,
  ALTERNATION_WINDOW_MS,
  type Connection,
  type ConnectionState,
  type Health,
  type HealthState,
  type Hold,
  type Loss,
  type OutageHistory,
} from "@rollcall/domain";
import { LEASE_EXPIRY_MS, MAX_GAP_MS, policyOf, STEP_MS } from "./simulation-options.ts";
import { UnheardTime } from "./unheard-time.ts";

/** A node's session in the store. */
export interface SimulatedSession {
  readonly node: number;
  epoch: number;
  /** The instance of the owner; null without an owner. */
  replica: string | null;
  connection: Connection;
  health: Health;
  history: OutageHistory;
  loss: Loss;
  /** Holds that follow from the node's health. */
  holds: readonly Hold[];
  /** The last agents that used the identity, oldest first. */
  machines: readonly AgentSighting[];
  /** Whether two agents are known to alternate in using the node's identity. */
  isDuplicated: boolean;
}

/**
 * The maximum time for which observed time stands still after a doubt, to compensate for time that was counted before
 * the doubt was noticed.
 */
const HANGOVER_MS = 1.5 * LEASE_EXPIRY_MS;

/** Two agents that alternate must be detected after this number of takeovers. */
const TURNS = 5;

/** The findings of the store about duplicated identities when a session is opened. */
interface Noted {
  readonly isDuplicated: boolean;
  /** Whether the opening of this session detected the two agents. */
  readonly isNoticed: boolean;
}

export class InvariantBroken extends Error {}

/** An event being appended. */
export interface AppendedEvent {
  readonly node: number;
  readonly kind: "connection" | "health";
  readonly before: ConnectionState | HealthState;
  readonly after: ConnectionState | HealthState;
  readonly actor: string;
}

/** A silence, and the number of interruptions of observation during it or shortly before. */
export interface SilentTime {
  readonly ms: number;
  readonly stretches: number;
}

/** A sign of life: when it was reported, and how long the node had been silent at that time. */
interface Sign {
  readonly atMs: number;
  readonly silentMs: number;
}

/** Computes which silences a replica should observe, from the interruptions that really happened to it. */
export class Observer {
  /** When the replica was paused or could have lost its lease. Deadlines are extended by at least this time. */
  readonly #lost = new UnheardTime();
  /**
   * Like #lost, but each doubt about the lease starts at the last renewal that proved the lease. Deadlines are
   * extended by at most this time.
   */
  readonly #granted = new UnheardTime();
  /** The start time of the last renewal that proved the lease. */
  #sureSinceMs: number | null = null;
  readonly #signs: Sign[];
  /**
   * For each node, the sign of life before the last one, if the last one came through another replica. It is kept
   * because it may leave the node more time than the last one does.
   */
  readonly #earlier = new Map<number, Sign>();

  constructor(nodes: number) {
    this.#signs = new Array<Sign>(nodes).fill({ atMs: 0, silentMs: 0 });
  }

  /**
   * Record that a renewal that began at `startMs` has succeeded. If the previous one was too long ago, the lease
   * was in doubt in between.
   */
  renewed(startMs: number, nowMs: number, wasHeld: boolean): void {
    const isGap = this.#sureSinceMs !== null && !this.isSure(nowMs);
    if (this.#sureSinceMs !== null && (isGap || !wasHeld)) {
      this.#granted.add(this.#sureSinceMs, nowMs);
      if (isGap) this.#lost.add(this.#sureSinceMs + LEASE_EXPIRY_MS, nowMs);
    }
    if (nowMs - startMs < LEASE_EXPIRY_MS) this.#sureSinceMs = startMs;
  }

  /** Whether no other process can have ended the replica's lease. */
  isSure(nowMs: number): boolean {
    return this.#sureSinceMs !== null && nowMs - this.#sureSinceMs < LEASE_EXPIRY_MS;
  }

  /**
   * Record a frame or the start of a grace period. `silentMs` is the time since then, or negative for a grace
   * period that starts later.
   */
  heard(node: number, nowMs: number, silentMs = 0): void {
    // Keep an earlier grace period that extends further.
    if (this.mostSilence(node, nowMs).ms <= silentMs) return;
    // A sign of life that came through another replica is old. If an interruption extended the time since the earlier
    // sign, that sign may leave the node more time. Therefore keep both signs.
    const earlier = silentMs > 0 ? this.#mostGranted(node, nowMs) : null;
    this.begin(node, nowMs, silentMs);
    if (earlier !== null) this.#earlier.set(node, earlier);
  }

  /** Start counting from now on. */
  begin(node: number, nowMs: number, silentMs = 0): void {
    this.#signs[node] = { atMs: nowMs, silentMs };
    this.#earlier.delete(node);
  }

  /** Record that the replica was paused from `fromMs` until `nowMs`. */
  stopped(fromMs: number, nowMs: number): void {
    this.#granted.add(fromMs, nowMs);
    this.#lost.add(fromMs, nowMs);
  }

  /** Record that the replica doubts its own network, and declares no node unhealthy for `forMs`. */
  stoodStill(nowMs: number, forMs: number): void {
    this.#granted.add(nowMs, nowMs + forMs);
    this.#lost.add(nowMs, nowMs + forMs);
  }

  /** The longest silence of the node that the replica can have observed, and the number of interruptions. */
  mostSilence(node: number, nowMs: number): SilentTime {
    const sinceMs = this.#sureSinceMs === null || this.isSure(nowMs) ? null : this.#sureSinceMs + LEASE_EXPIRY_MS;
    return silenceSince(this.#signOf(node), nowMs, { past: this.#lost, sinceMs });
  }

  /** The shortest silence of the node that the replica must have observed, and the number of interruptions. */
  leastSilence(node: number, nowMs: number): SilentTime {
    return silenceSince(this.#mostGranted(node, nowMs), nowMs, this.#grantedBy(nowMs));
  }

  /**
   * Whether the node has been silent for less than `ms` of real time. A fast check, because this is true for most
   * nodes most of the time.
   */
  isHeardWithin(node: number, nowMs: number, ms: number): boolean {
    const { atMs, silentMs } = this.#signOf(node);
    return silentMs + nowMs - atMs <= ms;
  }

  #grantedBy(nowMs: number): Interruptions {
    return { past: this.#granted, sinceMs: this.isSure(nowMs) ? null : this.#sureSinceMs };
  }

  #signOf(node: number): Sign {
    return this.#signs[node] ?? NO_SIGN;
  }

  /** The last sign of life or the one before it, whichever leaves the node more time. */
  #mostGranted(node: number, nowMs: number): Sign {
    const last = this.#signOf(node);
    const earlier = this.#earlier.get(node);
    if (earlier === undefined) return last;
    const costMs = (sign: Sign) => {
      const { ms, stretches } = silenceSince(sign, nowMs, this.#grantedBy(nowMs));
      return ms - stretches * LEASE_EXPIRY_MS;
    };
    return costMs(earlier) < costMs(last) ? earlier : last;
  }
}

const NO_SIGN: Sign = { atMs: 0, silentMs: 0 };

/**
 * The times when a replica could not receive. `sinceMs` is the start of an interruption that has not ended; null
 * without one.
 */
interface Interruptions {
  readonly past: UnheardTime;
  readonly sinceMs: number | null;
}

function silenceSince({ atMs, silentMs }: Sign, nowMs: number, { past, sinceMs }: Interruptions): SilentTime {
  // Count only until the start of a doubt that has not ended. The doubt is not in `past` yet, but observed time
  // also stands still during it.
  const heardUntilMs = sinceMs === null ? nowMs : Math.max(atMs, sinceMs);
  const { totalMs } = past.within(atMs, heardUntilMs);
  const { stretches } = past.within(atMs - HANGOVER_MS, nowMs);
  return { ms: silentMs + heardUntilMs - atMs - totalMs, stretches: stretches + (sinceMs === null ? 0 : 1) };
}

/** Checks the invariants at every step. */
export class Invariants {
  #nowMs = 0;
  readonly #last: Record<"connection" | "health", (ConnectionState | HealthState)[]>;
  readonly #epochs: Int32Array;
  readonly #owners: (string | null)[];
  /** The agents that last took over each node's session, oldest first. */
  readonly #agents: { readonly instanceId: string; readonly atMs: number }[][];
  /** For each node, the time until which a second agent uses its identity. */
  readonly #clonedUntilMs: Float64Array;
  /** The first broken invariant; null for none. */
  violation: string | null = null;
  /** Called with each event of a node after the event was checked. */
  listener: ((event: AppendedEvent) => void) | null = null;
  events = 0;
  declarations = 0;
  /** Transitions to UNHEALTHY or UNKNOWN that were written to the store. */
  recordedLosses = 0;

  constructor(nodes: number) {
    this.#last = {
      connection: new Array<ConnectionState>(nodes).fill("DISCONNECTED"),
      health: new Array<HealthState>(nodes).fill("UNKNOWN"),
    };
    this.#epochs = new Int32Array(nodes);
    this.#owners = new Array<string | null>(nodes).fill(null);
    this.#agents = Array.from({ length: nodes }, () => []);
    this.#clonedUntilMs = new Float64Array(nodes).fill(Number.NEGATIVE_INFINITY);
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  set nowMs(nowMs: number) {
    this.#nowMs = nowMs;
  }

  /** Check that an epoch has only one owner and is never reused. */
  onOwner(node: number, epoch: number, instance: string): void {
    const before = this.#epochs[node] ?? 0;
    if (epoch <= before) this.fail(`epoch ${epoch} of node ${node} has a second owner, ${instance}`);
    this.#epochs[node] = epoch;
    this.#owners[node] = instance;
  }

  /** Record that a node has a second agent until `untilMs`. */
  onCloned(node: number, untilMs: number): void {
    this.#clonedUntilMs[node] = Math.max(this.#clonedUntilMs[node] ?? 0, untilMs);
  }

  /** Check that two agents of a node are detected, and that one agent is not taken for two. */
  onOpened(node: number, instanceId: string, { isDuplicated, isNoticed }: Noted): void {
    const agents = this.#agents[node] ?? [];
    if (agents.at(-1)?.instanceId !== instanceId) agents.push({ instanceId, atMs: this.#nowMs });
    if (agents.length > TURNS) agents.shift();
    const isOfTwo = agents.every((it, index) => it.instanceId === agents[index % 2]?.instanceId);
    const isRecent = this.#nowMs - (agents[0]?.atMs ?? 0) < ALTERNATION_WINDOW_MS;
    if (!isDuplicated && agents.length === TURNS && isOfTwo && isRecent) {
      this.fail(`two agents alternate as node ${node}, and this was not detected`);
    }
    const hadTwo = this.#nowMs - (this.#clonedUntilMs[node] ?? 0) < ALTERNATION_WINDOW_MS;
    if (isNoticed && !hadTwo) this.fail(`node ${node} had one agent, but was marked as having two`);
  }

  /** Check that only the owner of the current epoch writes. */
  onWrite({ node }: SimulatedSession, instance: string, epoch: number): void {
    if (this.#owners[node] === instance && this.#epochs[node] === epoch) return;
    this.fail(`${instance} wrote node ${node} under epoch ${epoch}, which is fenced`);
  }

  /** Check that every transition has an event, and that every event is a transition. */
  onEvent(event: AppendedEvent): void {
    const { node, kind, before, after } = event;
    this.events += 1;
    if (before === after) this.fail(`an event of node ${node} changes nothing: ${kind} ${after}`);
    if (this.#last[kind][node] !== before) {
      this.fail(`node ${node} became ${before} without an event`);
    }
    this.#last[kind][node] = after;
    if (kind === "health" && after !== "HEALTHY") this.recordedLosses += 1;
    this.listener?.(event);
  }

  /** Check that the store agrees with its log. */
  checkRecorded(session: SimulatedSession): void {
    const { node } = session;
    const { state: connection } = session.connection;
    const { state: health } = session.health;
    if (this.#last.connection[node] !== connection || this.#last.health[node] !== health) {
      this.fail(`node ${node} is ${connection} ${health}, without an event`);
    }
  }

  /** Check that no node is declared before its deadline. */
  onDeclared(observer: Observer, node: number, to: "UNHEALTHY" | "UNKNOWN"): void {
    this.declarations += 1;
    if (!observer.isSure(this.#nowMs)) this.fail(`node ${node} was declared by a replica whose lease is in doubt`);
    const { unhealthyAfterMs, unknownAfterMs } = policyOf(node);
    const afterMs = to === "UNHEALTHY" ? unhealthyAfterMs : unknownAfterMs;
    const { ms, stretches } = observer.mostSilence(node, this.#nowMs);
    // Subtract the gap that the detector counts as silence at each interruption, and one step for rounding.
    if (ms >= afterMs - stretches * (MAX_GAP_MS + STEP_MS) - STEP_MS) return;
    this.fail(`node ${node} was declared ${to} after ${ms} ms of silence, before the deadline of ${afterMs} ms`);
  }

  /** Check that no node keeps its health beyond its deadline, in time that its owner could observe. */
  checkEvaluated(observer: Observer, node: number, health: HealthState): void {
    if (health === "UNKNOWN") return;
    const { unhealthyAfterMs, unknownAfterMs } = policyOf(node);
    const afterMs = health === "HEALTHY" ? unhealthyAfterMs : unknownAfterMs;
    if (observer.isHeardWithin(node, this.#nowMs, afterMs)) return;
    const { ms, stretches } = observer.leastSilence(node, this.#nowMs);
    // Allow LEASE_EXPIRY_MS for each interruption. After a doubt, observed time can stand still to make up for
    // time that was counted before the doubt was noticed.
    if (ms <= afterMs + stretches * LEASE_EXPIRY_MS + 2 * STEP_MS) return;
    this.fail(`node ${node} is still ${health} after ${ms} ms of silence; the deadline is ${afterMs} ms`);
  }

  /** Report a broken invariant. */
  fail(message: string): never {
    this.note(message);
    throw new InvariantBroken(message);
  }

  /** Like fail(), for code that must not throw. */
  note(message: string): void {
    this.violation ??= `at ${this.#nowMs / 1000} s: ${message}`;
  }
}
