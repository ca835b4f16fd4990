import { create } from "@bufbuild/protobuf";
import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type AgentLink, AgentSession, farewellFrom, type SessionEnd } from "@rollcall/health/parts";
import { Invariants } from "../health/invariants.ts";
import { SimulatedStore } from "../health/simulated-store.ts";
import { type BrokenRule, nodeIdOf } from "../health/simulation-options.ts";
import { ExploredReplica, type StoreCall } from "./explored-replica.ts";

/** Limits of the exploration. */
export interface Bounds {
  readonly streams: number;
  readonly beats: number;
  readonly epochs: number;
  readonly broken?: BrokenRule;
}

/** A possible next step. */
export interface Action {
  readonly name: string;
  /**
   * Whether the step loses or breaks something, or puts a lease in doubt. A walk that consists mostly of such steps
   * makes no progress.
   */
  readonly isFault?: true;
  take(): void;
}

const NODE = nodeIdOf(0);
const HELLO = create(HelloSchema, { nodeId: NODE });
const NONCE = new Uint8Array(32);
/** Represents the Hello in a list of frames, in which each Beat is its sequence number. */
const HELLO_FRAME = 0;

/**
 * One node, two replicas as they ship, and agents that open streams at any time. Frames, store calls and their
 * responses are delivered when the explorer says so: in any order, lost or duplicated. Leases end at any moment.
 */
export class ExploredWorld {
  readonly #bounds: Bounds;
  readonly #invariants = new Invariants(1);
  readonly #record: SimulatedStore;
  readonly #replicas: readonly ExploredReplica[];
  readonly #streams: ExploredStream[] = [];
  readonly #calls: StoreCall[] = [];

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    this.#record = new SimulatedStore(1, {
      ...{ invariants: this.#invariants, broken: bounds.broken },
      nowMs: () => 0,
    });
    this.#replicas = ["r0", "r1"].map((instance) => {
      return new ExploredReplica(instance, this.#record, {
        call: (call) => this.#calls.push(call),
        log: (message) => this.#invariants.note(message),
        onBeat: (sequence) => this.#streams.find(({ isReceiving }) => isReceiving)?.effects.push(sequence),
      });
    });
  }

  /** Everything that can happen next. */
  actions(): readonly Action[] {
    const actions: Action[] = [];
    this.#agentActions(actions);
    for (const [index, stream] of this.#streams.entries()) this.#streamActions(stream, index, actions);
    for (const [index, call] of this.#calls.entries()) this.#callActions(call, index, actions);
    for (const replica of this.#replicas) this.#replicaActions(replica, actions);
    return actions;
  }

  /** Take a step, and wait for its effects. */
  async take({ take }: Action): Promise<void> {
    take();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** The broken invariant; null when all hold. See docs/session-protocol.md for the invariants. */
  violation(): string | null {
    if (this.#invariants.violation !== null) return this.#invariants.violation;
    const { epoch = 0 } = this.#record.sessions[0] ?? {};
    const epochs = this.#streams.flatMap(({ session }) => session.openEpoch ?? []);
    if (epochs.filter((it) => it === epoch).length > 1) return "one live session";
    if (new Set(epochs).size < epochs.length) return "an epoch belongs to one stream";
    for (const { effects, hasEnded, session } of this.#streams) {
      if (hasEnded && session.openEpoch !== null) return "an ended stream stays ended";
      const isRising = effects.every((sequence, index) => sequence > (effects[index - 1] ?? 0));
      if (!isRising) return "a Beat counts once";
    }
    for (const replica of this.#replicas) {
      const held = replica.core.replica.nodes.find(NODE);
      const open = this.#streams.filter((it) => it.replica === replica && it.session.openEpoch !== null);
      if (open.some(({ session }) => session !== held?.stream)) return "an open session is held by its replica";
      if (held === undefined) continue;
      if ((held.connection.state === "CONNECTED") !== (held.stream !== null))
        return "a node is CONNECTED if it has a stream";
      if (held.stream === null) continue;
      if (open[0]?.session.openEpoch !== held.epoch) return "a held session is open";
    }
    return null;
  }

  /**
   * Deliver everything in transit, take the leases, and let each replica write and adopt. Then the store and the node's
   * owner must agree. Next, processes that had lost their lease doubt it and take it again; after that, no second
   * replica may hold the node. Returns the broken invariant; null for none.
   */
  async settle(): Promise<string | null> {
    const fenced = this.#replicas.filter(({ instance }) => !this.#record.leases.has(instance));
    await this.#comeToRest();
    const broken = this.violation() ?? this.#disagreement();
    if (broken !== null) return broken;
    for (const { core } of fenced) core.leaseDoubted(0);
    await this.#comeToRest();
    return this.violation() ?? this.#disagreement() ?? this.#secondHolder();
  }

  async #comeToRest(): Promise<void> {
    for (let round = 0; round < SETTLE_ROUNDS; round += 1) {
      for (const { instance, core } of this.#replicas) {
        this.#record.take(instance);
        core.leaseHeld();
      }
      for (const replica of this.#replicas) {
        replica.follow();
        replica.adopt();
        replica.write();
      }
      while (this.#calls.length > 0) {
        const [call] = this.#calls.splice(0, 1);
        call?.carryOut();
        call?.answer();
        await new Promise((resolve) => setImmediate(resolve));
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /**
   * Everything that affects what can happen next, as text. States that become equal when the replicas are swapped have
   * the same text.
   */
  fingerprint(): string {
    const texts = [this.#fingerprintOf(this.#replicas), this.#fingerprintOf(this.#replicas.toReversed())];
    return texts.sort().join();
  }

  #fingerprintOf(replicas: readonly ExploredReplica[]): string {
    const [session] = this.#record.sessions;
    const place = (name: string | null | undefined) => replicas.findIndex(({ instance }) => instance === name);
    return JSON.stringify([
      [session?.epoch, place(session?.replica), session?.connection.state, session?.health.state],
      replicas.map(({ instance }) => this.#record.leases.has(instance)),
      this.#streams.map(({ replica, session: it, frames, effects, hasEnded }) => {
        return [place(replica.instance), it.openEpoch, it.isOpening, frames.toSorted(), effects, hasEnded];
      }),
      replicas.map((replica) => replica.fingerprint(NODE, this.#streams)),
      this.#calls.map(({ caller, name, isDone }) => `${place(caller)} ${name} ${isDone}`).sort(),
    ]);
  }

  #disagreement(): string | null {
    const [session] = this.#record.sessions;
    if (this.#streams.some(({ session: it }) => it.isOpening)) return "every Hello is answered";
    if (session === undefined || session.replica === null) return null;
    const isFencedOpen = this.#streams.some(({ replica, session: it }) => {
      return it.openEpoch !== null && replica.instance !== session.replica;
    });
    if (isFencedOpen) return "a fenced stream is closed";
    const owner = this.#replicas.find(({ instance }) => instance === session.replica);
    const held = owner?.core.replica.nodes.find(NODE);
    if (held === undefined || held.epoch !== session.epoch) return "a live owner holds its nodes";
    const isSame = held.connection.state === session.connection.state && held.health.state === session.health.state;
    return isSame ? null : "every transition reaches the store";
  }

  #secondHolder(): string | null {
    const holders = this.#replicas.filter(({ core }) => core.replica.nodes.find(NODE) !== undefined);
    return holders.length > 1 ? "only its owner holds a node" : null;
  }

  #agentActions(actions: Action[]): void {
    if (this.#streams.length < this.#bounds.streams) {
      for (const replica of this.#replicas) {
        const open = () => this.#streams.push(new ExploredStream(replica));
        actions.push({ name: `a stream is opened at ${replica.instance}`, take: open });
      }
    }
    for (const [index, { session, frames, effects }] of this.#streams.entries()) {
      const sent = Math.max(0, ...frames, ...effects);
      if (session.openEpoch === null || sent >= this.#bounds.beats) continue;
      actions.push({ name: `stream ${index} beats`, take: () => frames.push(sent + 1) });
    }
  }

  /**
   * Add the actions of a stream. Each frame arrives, arrives and stays (a duplicate), or is lost; the connection can
   * also break.
   */
  #streamActions(stream: ExploredStream, index: number, actions: Action[]): void {
    for (const frame of new Set(stream.frames)) {
      const name = `frame ${frame} of stream ${index}`;
      const lose = () => stream.frames.splice(stream.frames.indexOf(frame), 1);
      actions.push({ name: `${name} arrives, and stays as a duplicate`, take: () => stream.receive(frame) });
      actions.push({
        name: `${name} arrives`,
        take: () => {
          lose();
          stream.receive(frame);
        },
      });
      actions.push({ name: `${name} is lost`, isFault: true, take: lose });
    }
    if (!stream.hasEnded) actions.push({ name: `stream ${index} breaks`, isFault: true, take: () => stream.break() });
  }

  /** Add the actions of a call. The call reaches the store, and its response reaches the caller; either can be lost. */
  #callActions(call: StoreCall, index: number, actions: Action[]): void {
    const told = `${call.caller}'s call "${call.name}"`;
    const remove = () => this.#calls.splice(index, 1);
    const lose = () => {
      remove();
      call.lose();
    };
    if (call.isDone) {
      const answer = () => {
        remove();
        call.answer();
      };
      actions.push({ name: `the answer to ${told} arrives`, take: answer });
      actions.push({ name: `the answer to ${told} is lost`, isFault: true, take: lose });
      return;
    }
    actions.push({ name: `${told} is lost`, isFault: true, take: lose });
    const isFull = call.isGiving && (this.#record.sessions[0]?.epoch ?? 0) >= this.#bounds.epochs;
    if (!isFull) actions.push({ name: `${told} is carried out`, take: () => call.carryOut() });
  }

  /**
   * Add the actions of a replica. It decides health, writes, adopts, follows the log, and doubts or loses its lease at
   * any time.
   */
  #replicaActions(replica: ExploredReplica, actions: Action[]): void {
    const { instance, core } = replica;
    const add = (name: string, take: () => void) => actions.push({ name: `${instance} ${name}`, take });
    const health = core.replica.nodes.find(NODE)?.health.state;
    if (health === "HEALTHY" && !core.replica.detector.isSuspended)
      add("evaluates after silence", () => replica.evaluate());
    if (replica.mayWrite) add("writes", () => replica.write());
    if (replica.mayAdopt) add("adopts", () => replica.adopt());
    if (replica.isBehindLog) add("follows the log", () => replica.follow());
    const isLeased = this.#record.leases.has(instance);
    const fault = (name: string, take: () => void) => {
      actions.push({ name: `${instance} ${name}`, isFault: true, take });
    };
    if (isLeased) fault("loses its lease", () => void this.#record.leases.delete(instance));
    if (core.replica.mayOpen) fault("doubts", () => core.leaseDoubted(replica.nowMs));
    else {
      add("holds its lease", () => {
        this.#record.take(instance);
        core.leaseHeld();
      });
    }
  }
}

const SETTLE_ROUNDS = 12;

/** One stream, with frames in transit to its replica. */
export class ExploredStream implements AgentLink {
  readonly replica: ExploredReplica;
  readonly session: AgentSession;
  /** Frames in transit; a Beat is its sequence number. */
  readonly frames: number[] = [HELLO_FRAME];
  /** Sequence numbers of the Beats that took effect. */
  readonly effects: number[] = [];
  hasEnded = false;
  isReceiving = false;
  readonly peer = "agent:1";
  readonly proofMethod = "";
  readonly takesOldBeats = true;
  readonly carriesWork = false;
  readonly isBehind = false;
  readonly isTooSlow = false;

  constructor(replica: ExploredReplica) {
    this.replica = replica;
    const options = { firstSequence: 0, nonce: NONCE, helloWithinMs: null };
    this.session = new AgentSession(this, replica.host, options);
  }

  receive(frame: number): void {
    this.isReceiving = true;
    try {
      if (frame === HELLO_FRAME) this.session.receive({ kind: "hello", hello: HELLO });
      else this.session.beat({ sequence: frame, settingsGeneration: 1, agentTimeMs: 0n, executionsDigest: 0n });
    } catch (error) {
      this.session.fail(farewellFrom(error));
    }
    this.isReceiving = false;
  }

  break(): void {
    this.hasEnded = true;
    this.session.gone("broken");
  }

  sendWelcome(): void {}
  sendAck(): void {}
  sendMembership(): void {}
  sendSettings(): void {}
  sendWork(): void {}
  sendAuthorities(): void {}

  sendMove(): boolean {
    return true;
  }

  ended(_end: SessionEnd): void {
    this.hasEnded = true;
  }
}
