import { Detector, decideFrame, NO_SEQUENCE, onBeat, openSession } from "@rollcall/domain";
import { HelloQueue } from "./hello-queue.ts";
import { RecordWork } from "./record-work.ts";
import { ReplicaTime } from "./replica-time.ts";
import { endStream } from "./simulated-agent.ts";
import type { RecordedSession, SimulatedEvent, SimulatedOpening } from "./simulated-record.ts";
import { createHeld, type SimulatedHeld, type SimulatedStream } from "./simulated-stream.ts";
import { policyOf, STEP_MS } from "./simulation-options.ts";
import type { World } from "./world.ts";

const SUPERSEDED_MS = 30_000;
const TURNED_AWAY_MS = 3_000;
const AGENTS_A_SECOND = 500;

/**
 * A health replica on the domain's own detector, observed time, lease observer and session decisions. What is around
 * these is the health service's: `Replica`, `Silence` and `HelloDesk`, written down once more without their sockets.
 */
export class SimulatedReplica {
  readonly instance: string;
  readonly slot: number;
  readonly time: ReplicaTime;
  readonly held = new Map<number, SimulatedHeld>();
  readonly work: RecordWork;
  readonly #world: World;
  readonly #hellos: HelloQueue;
  readonly #detector = new Detector<SimulatedHeld>({ tickMs: STEP_MS });
  #isClosing = false;
  #turnedAwayUntilMs = -1;

  constructor(world: World, instance: string, slot: number) {
    this.#world = world;
    this.instance = instance;
    this.slot = slot;
    this.time = new ReplicaTime(world);
    this.#hellos = new HelloQueue(world, this);
    this.work = new RecordWork(world, this);
  }

  get mayOpen(): boolean {
    return this.time.isLeaseHeld && !this.#isClosing;
  }

  /** Whether it judges just now. */
  get isJudging(): boolean {
    return !this.time.isSuspended;
  }

  isOpening(node: number): boolean {
    return this.#hellos.isOpening(node);
  }

  // What streams bring.

  onHello(stream: SimulatedStream): void {
    const decision = decideFrame(stream.state, "hello");
    if (decision.action === "refuse") {
      this.#refuse(stream);
      return;
    }
    if (decision.action !== "authenticate") return;
    stream.state = decision.next;
    if (this.mayOpen) this.#hellos.add(stream);
    else this.turnAway(stream);
  }

  onBeat(stream: SimulatedStream, sequence: number): void {
    const node = this.#nodeOf(stream);
    const { state } = stream;
    if (node === null || state.kind !== "open") {
      if (decideFrame(state, "beat", sequence).action === "refuse") this.#refuse(stream);
      return;
    }
    this.#heard(node);
    if (onBeat(sequence, state.lastSequence)) {
      const isFirst = state.lastSequence === NO_SEQUENCE;
      stream.state = { ...state, lastSequence: sequence };
      if (isFirst && node.watch.health !== "HEALTHY") {
        this.#detector.revive(node.watch, this.time.observedMs);
        this.work.add(node);
      }
    }
    const { agent } = stream;
    this.#world.network.sendFrame(agent.index, this.slot, () => agent.onAck(stream));
  }

  onGoodbye(stream: SimulatedStream): void {
    const node = this.#nodeOf(stream);
    if (decideFrame(stream.state, "goodbye").action !== "leave") return;
    endStream(stream, "AGENT_SHUTDOWN");
    if (node === null) return;
    node.stream = null;
    node.connection = "DISCONNECTED";
    this.#detector.declare(node.watch, "UNHEALTHY", this.time.observedMs);
    this.time.observer.begin(node.node, this.time.realMs);
    this.work.add(node);
  }

  onGone(stream: SimulatedStream): void {
    const node = this.#nodeOf(stream);
    endStream(stream, "STREAM_BROKEN");
    if (node !== null) this.#disconnect(node);
  }

  // What the record brings.

  /**
   * The record has opened a session: make it the node's current one. Events that came meanwhile follow, then the
   * Welcome.
   */
  take(stream: SimulatedStream, opening: SimulatedOpening, events: readonly SimulatedEvent[]): void {
    const { index } = stream.agent;
    const node = this.#current(index, opening) ?? this.#hold(index, opening.health);
    const old = node.stream;
    node.stream = stream;
    if (old !== null) this.#leave(old, SUPERSEDED_MS);
    node.epoch = opening.epoch;
    node.asOfRevision = opening.revision;
    node.connection = "CONNECTED";
    node.writtenConnection = "CONNECTED";
    node.writtenHealth = opening.health;
    node.wasHere = true;
    this.#heard(node);
    this.work.add(node);
    this.apply(events);
    const next = openSession(stream.state, opening.epoch);
    if (next === null) {
      if (node.stream === stream) this.#disconnect(node);
      return;
    }
    stream.state = next;
    this.#world.network.sendFrame(index, this.slot, () => stream.agent.onWelcome(stream));
  }

  /** Hold nodes that have no stream here, each with its full grace. */
  adopt(rows: readonly RecordedSession[], asOfRevision: number): void {
    for (const row of rows) {
      const before = this.held.get(row.node);
      if (before !== undefined && before.epoch >= row.epoch) continue;
      if (before !== undefined) this.lose(before);
      const node = this.#hold(row.node, row.health);
      node.epoch = row.epoch;
      node.asOfRevision = asOfRevision;
      node.writtenConnection = row.connection;
      node.connection = row.connection;
      if (row.connection === "CONNECTED") this.#disconnect(node);
    }
  }

  /** Follow the log. */
  apply(events: readonly SimulatedEvent[]): void {
    for (const event of events) {
      const node = this.held.get(event.node);
      if (node === undefined || event.revision <= node.asOfRevision) continue;
      if (event.kind === "connection" && event.actor !== this.instance) this.lose(node);
    }
  }

  /** Keep what happens to nodes that are being taken in. */
  observe(events: readonly SimulatedEvent[]): void {
    this.#hellos.observe(events);
    this.apply(events);
  }

  /** It turns out that another replica holds the node. */
  lose(node: SimulatedHeld): void {
    this.#detector.unwatch(node.watch);
    this.held.delete(node.node);
    if (node.stream !== null) this.#leave(node.stream, TURNED_AWAY_MS);
    node.stream = null;
  }

  /** Another replica says that a node that was taken over still beats there. */
  contacted(index: number, silentMs: number): void {
    const node = this.held.get(index);
    if (node === undefined || node.wasHere || node.stream !== null) return;
    if (node.watch.health !== "HEALTHY") return;
    this.#detector.touch(node.watch, this.time.observedMs - silentMs);
    this.time.observer.heard(index, this.time.realMs, silentMs);
  }

  // Its lease, and time.

  /** A renewal that was begun then has succeeded. */
  leaseRenewed(startMs: number, wasHeld: boolean): void {
    if (this.time.renewed(startMs, wasHeld, this.#isClosing)) this.work.adoptSoon();
  }

  /** What it does each tick, after its sockets were read. */
  tick(): void {
    this.time.checkDoubt();
    this.work.follow();
    this.time.advance();
    if (this.time.isSuspended && this.#world.broken !== "lost-time-granted") return;
    if (this.#world.broken === "silence-judged") return;
    const observedMs = this.time.observedMs;
    for (const { watch, from, to } of this.#detector.advance(observedMs)) {
      const { subject: node } = watch;
      if (this.time.realMs < this.#turnedAwayUntilMs && !node.wasHere) {
        this.#detector.declare(watch, from, observedMs);
        this.time.observer.begin(node.node, this.time.realMs);
        continue;
      }
      this.#world.invariants.onDeclared(this.time.observer, node.node, to);
      this.work.add(node);
      if (node.stream !== null) this.#leave(node.stream, 0);
      this.#disconnect(node);
    }
  }

  /** Ask every agent to open a stream elsewhere, and to keep this one until it has. */
  askToMove(): void {
    for (const { stream } of this.held.values()) {
      if (stream?.state.kind !== "open") continue;
      const { agent } = stream;
      this.#world.network.sendFrame(agent.index, this.slot, () => agent.onMove(stream));
    }
  }

  /** End in order: every agent is told when to come back. */
  close(): void {
    this.#isClosing = true;
    this.time.end();
    const spreadMs = Math.max(1_000, (this.held.size * 1_000) / AGENTS_A_SECOND);
    for (const node of this.held.values()) {
      if (node.stream !== null) this.#leave(node.stream, this.#world.random() * spreadMs);
      node.stream = null;
    }
  }

  /** Send an agent away for what is no fault of its own. */
  turnAway(stream: SimulatedStream): void {
    this.#leave(stream, TURNED_AWAY_MS);
    this.#turnedAwayUntilMs = Math.max(this.#turnedAwayUntilMs, this.time.realMs + TURNED_AWAY_MS);
    const node = this.held.get(stream.agent.index);
    if (node === undefined) return;
    this.#detector.touch(node.watch, this.time.observedMs + TURNED_AWAY_MS);
    this.time.observer.heard(node.node, this.time.realMs, -TURNED_AWAY_MS);
  }

  /** A newer Hello of the same node waits. */
  supersede(stream: SimulatedStream): void {
    this.#leave(stream, SUPERSEDED_MS);
  }

  #current(index: number, { epoch, previousReplica }: SimulatedOpening): SimulatedHeld | null {
    const node = this.held.get(index);
    if (node === undefined) return null;
    if (previousReplica === this.instance && epoch === node.epoch + 1) return node;
    this.lose(node);
    return null;
  }

  #hold(node: number, health: SimulatedHeld["writtenHealth"]): SimulatedHeld {
    const isUngraced = this.#world.broken === "adoption-grants-grace";
    const lastReceivedMs = this.time.observedMs - (isUngraced ? policyOf(node).unhealthyAfterMs : 0);
    const state = {
      health,
      lastReceivedMs: Math.max(0, lastReceivedMs),
      thresholds: policyOf(node),
    };
    const whole = createHeld(node, health, (held) => this.#detector.watch(held, state));
    this.time.observer.begin(node, this.time.realMs);
    this.held.set(node, whole);
    return whole;
  }

  /** The node whose only current stream this is. */
  #nodeOf(stream: SimulatedStream): SimulatedHeld | null {
    const node = this.held.get(stream.agent.index);
    return node?.stream === stream ? node : null;
  }

  #heard(node: SimulatedHeld): void {
    node.lastFrameAtMs = this.time.realMs;
    this.#detector.touch(node.watch, this.time.observedMs);
    this.time.observer.heard(node.node, this.time.realMs);
  }

  #disconnect(node: SimulatedHeld): void {
    node.stream = null;
    node.connection = "DISCONNECTED";
    this.work.add(node);
  }

  #refuse(stream: SimulatedStream): void {
    const node = this.#nodeOf(stream);
    this.#leave(stream, 0);
    if (node !== null) this.#disconnect(node);
  }

  #leave(stream: SimulatedStream, retryAfterMs: number): void {
    if (stream.state.kind === "closed") return;
    endStream(stream, "LEFT");
    const { agent } = stream;
    this.#world.network.sendFrame(agent.index, this.slot, () => agent.onEnd(stream, retryAfterMs));
  }
}
