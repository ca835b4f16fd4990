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

/** A node's session as the record has it. */
export interface SimulatedSession {
  readonly node: number;
  epoch: number;
  /** The instance that owns it. */
  replica: string | null;
  connection: Connection;
  health: Health;
  history: OutageHistory;
  loss: Loss;
  /** Those that follow from its health. */
  holds: readonly Hold[];
  /** The last changes of agent, oldest first. */
  machines: readonly AgentSighting[];
  /** Whether two agents are known to use the node's identity in turns. */
  isDuplicated: boolean;
}

/** Observed time may stand still for so long after a doubt, until what was given out before is paid. */
const HANGOVER_MS = 1.5 * LEASE_EXPIRY_MS;

/** By the time that two agents have taken a session from each other this often, they are noticed. */
const TURNS = 5;

/** What the record says of two agents once a session is open. */
interface Noted {
  readonly isDuplicated: boolean;
  /** Whether this session made it say so. */
  readonly isNoticed: boolean;
}

/** An invariant does not hold. */
export class InvariantBroken extends Error {}

/** One event as it is appended. */
export interface AppendedEvent {
  readonly node: number;
  readonly kind: "connection" | "health";
  readonly before: ConnectionState | HealthState;
  readonly after: ConnectionState | HealthState;
  readonly actor: string;
}

/** A silence, and the interruptions of hearing in it or shortly before. */
export interface SilentTime {
  readonly ms: number;
  readonly stretches: number;
}

/** A sign of life: when it was reported, and how long the node had been silent then. */
interface Sign {
  readonly atMs: number;
  readonly silentMs: number;
}

/** One replica's view of its nodes, kept beside the replica by what really happened to it. */
export class Observer {
  /** When it stood still, or may have lost its lease: at least this is granted. */
  readonly #lost = new UnheardTime();
  /** The same, and back to the last proof of its lease from each doubt: at most this is granted. */
  readonly #granted = new UnheardTime();
  /** When the last renewal that proved its lease was begun. */
  #sureSinceMs: number | null = null;
  readonly #signs: Sign[];
  /** The sign of life before the last one, where that came by another replica and may have granted less. */
  readonly #earlier = new Map<number, Sign>();

  constructor(nodes: number) {
    this.#signs = new Array<Sign>(nodes).fill({ atMs: 0, silentMs: 0 });
  }

  /** A renewal that was begun then has succeeded by now. What lies between two that are too far apart was doubt. */
  renewed(startMs: number, nowMs: number, wasHeld: boolean): void {
    const isGap = this.#sureSinceMs !== null && !this.isSure(nowMs);
    if (this.#sureSinceMs !== null && (isGap || !wasHeld)) {
      this.#granted.add(this.#sureSinceMs, nowMs);
      if (isGap) this.#lost.add(this.#sureSinceMs + LEASE_EXPIRY_MS, nowMs);
    }
    if (nowMs - startMs < LEASE_EXPIRY_MS) this.#sureSinceMs = startMs;
  }

  /** Whether no other process can have ended its lease. */
  isSure(nowMs: number): boolean {
    return this.#sureSinceMs !== null && nowMs - this.#sureSinceMs < LEASE_EXPIRY_MS;
  }

  /** A frame came, or a grace begins; `silentMs` had passed since then, or is still to come where it is below 0. */
  heard(node: number, nowMs: number, silentMs = 0): void {
    // What was granted ahead is not taken back.
    if (this.mostSilence(node, nowMs).ms <= silentMs) return;
    // What another replica heard may be older than what an interruption has granted, and then changes nothing.
    const earlier = silentMs > 0 ? this.#mostGranted(node, nowMs) : null;
    this.begin(node, nowMs, silentMs);
    if (earlier !== null) this.#earlier.set(node, earlier);
  }

  /** Start counting from now on. */
  begin(node: number, nowMs: number, silentMs = 0): void {
    this.#signs[node] = { atMs: nowMs, silentMs };
    this.#earlier.delete(node);
  }

  /** It stood still from then until now. */
  stopped(fromMs: number, nowMs: number): void {
    this.#granted.add(fromMs, nowMs);
    this.#lost.add(fromMs, nowMs);
  }

  /** It takes its own network for broken, and judges no node for so long from now on. */
  stoodStill(nowMs: number, forMs: number): void {
    this.#granted.add(nowMs, nowMs + forMs);
    this.#lost.add(nowMs, nowMs + forMs);
  }

  /** For how long the node was silent at most, by what could be heard, and how often that was interrupted. */
  mostSilence(node: number, nowMs: number): SilentTime {
    const sinceMs = this.#sureSinceMs === null || this.isSure(nowMs) ? null : this.#sureSinceMs + LEASE_EXPIRY_MS;
    return silenceSince(this.#signOf(node), nowMs, { past: this.#lost, sinceMs });
  }

  /** For how long the node was silent at least. */
  leastSilence(node: number, nowMs: number): SilentTime {
    return silenceSince(this.#mostGranted(node, nowMs), nowMs, this.#grantedBy(nowMs));
  }

  /** Whether it has been silent for less than so long, whatever was granted: most nodes most of the time. */
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

  /** Of the last sign and the one before it, that which leaves a node more time. */
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

/** When a replica could not hear: before, and since when it has not been able to until now; null for not. */
interface Interruptions {
  readonly past: UnheardTime;
  readonly sinceMs: number | null;
}

function silenceSince({ atMs, silentMs }: Sign, nowMs: number, { past, sinceMs }: Interruptions): SilentTime {
  // A doubt that lasts is no past stretch yet, and observed time stands still in it all the same.
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
  /** The agents that took over each node's session last, oldest first. */
  readonly #agents: { readonly instanceId: string; readonly atMs: number }[][];
  /** Until when a node had two agents. */
  readonly #clonedUntilMs: Float64Array;
  /** The first broken invariant; null for none. */
  violation: string | null = null;
  /** Told of each event of a node, once it was checked. */
  listener: ((event: AppendedEvent) => void) | null = null;
  events = 0;
  declarations = 0;
  /** Declarations of UNHEALTHY or UNKNOWN that were written to the record. */
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

  /** An epoch has one owner, and none comes back. */
  onOwner(node: number, epoch: number, instance: string): void {
    const before = this.#epochs[node] ?? 0;
    if (epoch <= before) this.fail(`epoch ${epoch} of node ${node} has a second owner, ${instance}`);
    this.#epochs[node] = epoch;
    this.#owners[node] = instance;
  }

  /** A second agent of a node runs until then. */
  onCloned(node: number, untilMs: number): void {
    this.#clonedUntilMs[node] = Math.max(this.#clonedUntilMs[node] ?? 0, untilMs);
  }

  /** Two agents of a node are noticed, and one agent is not taken for two. */
  onOpened(node: number, instanceId: string, { isDuplicated, isNoticed }: Noted): void {
    const agents = this.#agents[node] ?? [];
    if (agents.at(-1)?.instanceId !== instanceId) agents.push({ instanceId, atMs: this.#nowMs });
    if (agents.length > TURNS) agents.shift();
    const isOfTwo = agents.every((it, index) => it.instanceId === agents[index % 2]?.instanceId);
    const isRecent = this.#nowMs - (agents[0]?.atMs ?? 0) < ALTERNATION_WINDOW_MS;
    if (!isDuplicated && agents.length === TURNS && isOfTwo && isRecent) {
      this.fail(`two agents take turns as node ${node}, and the record does not say so`);
    }
    const hadTwo = this.#nowMs - (this.#clonedUntilMs[node] ?? 0) < ALTERNATION_WINDOW_MS;
    if (isNoticed && !hadTwo) this.fail(`node ${node} had one agent, and the record says two`);
  }

  /** Only the owner of the current epoch writes. */
  onWrite({ node }: SimulatedSession, instance: string, epoch: number): void {
    if (this.#owners[node] === instance && this.#epochs[node] === epoch) return;
    this.fail(`${instance} wrote node ${node} under epoch ${epoch}, which is fenced`);
  }

  /** Every transition has one event, and every event is a transition. */
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

  /** The record says what its log says. */
  checkRecorded(session: SimulatedSession): void {
    const { node } = session;
    const { state: connection } = session.connection;
    const { state: health } = session.health;
    if (this.#last.connection[node] !== connection || this.#last.health[node] !== health) {
      this.fail(`node ${node} is ${connection} ${health}, which no event has told`);
    }
  }

  /** No node is declared before the deadline. */
  onDeclared(observer: Observer, node: number, to: "UNHEALTHY" | "UNKNOWN"): void {
    this.declarations += 1;
    if (!observer.isSure(this.#nowMs)) this.fail(`node ${node} was judged by a replica in doubt`);
    const { unhealthyAfterMs, unknownAfterMs } = policyOf(node);
    const afterMs = to === "UNHEALTHY" ? unhealthyAfterMs : unknownAfterMs;
    const { ms, stretches } = observer.mostSilence(node, this.#nowMs);
    // What passes for normal of each stretch, and one step of rounding.
    if (ms >= afterMs - stretches * (MAX_GAP_MS + STEP_MS) - STEP_MS) return;
    this.fail(`node ${node} was declared ${to} after ${ms} ms of silence, not ${afterMs}`);
  }

  /** No node keeps its health beyond the deadline, as far as its observer could observe. */
  checkJudged(observer: Observer, node: number, health: HealthState): void {
    if (health === "UNKNOWN") return;
    const { unhealthyAfterMs, unknownAfterMs } = policyOf(node);
    const afterMs = health === "HEALTHY" ? unhealthyAfterMs : unknownAfterMs;
    if (observer.isHeardWithin(node, this.#nowMs, afterMs)) return;
    const { ms, stretches } = observer.leastSilence(node, this.#nowMs);
    // Time that was given out before a doubt took it back is paid off before observed time goes on.
    if (ms <= afterMs + stretches * LEASE_EXPIRY_MS + 2 * STEP_MS) return;
    this.fail(`node ${node} is ${health} after ${ms} ms of silence, of ${afterMs}`);
  }

  /** An invariant is broken. */
  fail(message: string): never {
    this.note(message);
    throw new InvariantBroken(message);
  }

  /** The same, where nothing may be thrown. */
  note(message: string): void {
    this.violation ??= `at ${this.#nowMs / 1000} s: ${message}`;
  }
}
