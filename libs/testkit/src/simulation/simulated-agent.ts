import { closeSession } from "@rollcall/domain";
import type { SimulatedStream } from "./simulated-stream.ts";
import { policyOf } from "./simulation-options.ts";
import type { World } from "./world.ts";

const CONNECT_PATIENCE_MS = 5_000;
const WELCOME_PATIENCE_MS = 20_000;
const LONGEST_ACK_PATIENCE_MS = 20_000;
const RETRY_MS = 2_000;

/** An agent: it says hello, beats, and leaves a path on which nothing is acknowledged. */
export class SimulatedAgent {
  readonly index: number;
  readonly #world: World;
  #isRunning = false;
  #isStopped = false;
  #life = 0;
  #stream: SimulatedStream | null = null;
  #opening: SimulatedStream | null = null;
  #openedAtMs = 0;
  #lastAckMs = 0;
  #retryAtMs = 0;
  #sequence = 0;
  /** Where it tried last; -1 before it has. */
  #slot = -1;

  constructor(index: number, world: World) {
    this.index = index;
    this.#world = world;
  }

  /** Whether it runs and is not stopped. */
  get isUp(): boolean {
    return this.#isRunning && !this.#isStopped;
  }

  /** Begin, some time within `withinMs`. */
  start(withinMs: number): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#life += 1;
    const life = this.#life;
    this.#retryAtMs = this.#world.schedule.nowMs + this.#world.random() * withinMs;
    this.#world.schedule.after(withinMs, () => this.#beatInTurn(life));
  }

  /** Die without a word; the kernel ends its connections. */
  crash(): void {
    this.#isRunning = false;
    this.#life += 1;
    this.#drop(this.#stream);
    this.#drop(this.#opening);
    this.#stream = null;
    this.#opening = null;
  }

  goodbye(): void {
    const stream = this.#stream;
    if (this.isUp && stream !== null) this.#send(stream, () => stream.replica.onGoodbye(stream));
    this.crash();
  }

  /** Be stopped: connections stay, nothing is sent or read. */
  stop(): void {
    this.#isStopped = true;
  }

  resume(): void {
    this.#isStopped = false;
    if (this.#isRunning && this.#stream !== null) this.#beat(this.#stream);
  }

  /** Open a stream elsewhere, and keep the old one until the Welcome. */
  move(): void {
    if (this.isUp && this.#stream !== null && this.#opening === null) this.#open();
  }

  /** What its timers would do; to be called every second. */
  look(): void {
    if (!this.isUp) return;
    const { nowMs } = this.#world.schedule;
    if (this.#stream !== null && nowMs - this.#lastAckMs >= this.#ackPatienceMs()) {
      this.#drop(this.#stream);
      this.#stream = null;
      this.#retryAtMs = nowMs;
    }
    if (this.#opening !== null && nowMs - this.#openedAtMs >= patienceOf(this.#opening)) {
      this.#drop(this.#opening);
      this.#opening = null;
      this.#retryAtMs = nowMs + this.#world.random() * RETRY_MS;
    }
    if (this.#stream === null && this.#opening === null && nowMs >= this.#retryAtMs) this.#open();
  }

  onWelcome(stream: SimulatedStream): void {
    if (!this.isUp || stream !== this.#opening) return;
    const old = this.#stream;
    this.#opening = null;
    this.#stream = stream;
    this.#sequence = 0;
    this.#lastAckMs = this.#world.schedule.nowMs;
    this.#beat(stream);
    this.#drop(old);
  }

  onAck(stream: SimulatedStream): void {
    if (this.isUp && stream === this.#stream) this.#lastAckMs = this.#world.schedule.nowMs;
  }

  onMove(stream: SimulatedStream): void {
    if (stream === this.#stream) this.move();
  }

  /** The replica has ended a stream and says when to come back. */
  onEnd(stream: SimulatedStream, retryAfterMs: number): void {
    if (!this.isUp) return;
    if (stream === this.#stream) this.#stream = null;
    else if (stream === this.#opening) this.#opening = null;
    else return;
    this.#retryAtMs = this.#world.schedule.nowMs + retryAfterMs + this.#world.random() * RETRY_MS;
  }

  #beatInTurn(life: number): void {
    if (life !== this.#life) return;
    this.#world.schedule.after(policyOf(this.index).heartbeatMs, () => this.#beatInTurn(life));
    if (!this.#isStopped && this.#stream !== null) this.#beat(this.#stream);
  }

  #beat(stream: SimulatedStream): void {
    this.#sequence += 1;
    const sequence = this.#sequence;
    this.#send(stream, () => stream.replica.onBeat(stream, sequence));
  }

  #open(): void {
    const { slots } = this.#world;
    this.#slot = this.#slot < 0 ? Math.floor(this.#world.random() * slots) : (this.#slot + 1) % slots;
    const slot = this.#slot;
    const replica = this.#world.replicaAt(slot);
    if (replica === null) {
      // Refused at once.
      this.#retryAtMs = this.#world.schedule.nowMs + this.#world.random() * RETRY_MS;
      return;
    }
    const stream = this.#world.createStream(this, replica);
    this.#opening = stream;
    this.#openedAtMs = this.#world.schedule.nowMs;
    this.#send(stream, () => replica.onHello(stream));
  }

  /** Close a connection; the replica learns of it if anything passes. */
  #drop(stream: SimulatedStream | null): void {
    if (stream === null) return;
    this.#send(stream, () => stream.replica.onGone(stream));
  }

  #send(stream: SimulatedStream, deliver: () => void): void {
    const { network } = this.#world;
    network.sendFrame(this.index, stream.replica.slot, () => {
      this.#world.deliver(stream.replica, deliver);
    });
  }

  #ackPatienceMs(): number {
    return Math.min(LONGEST_ACK_PATIENCE_MS, policyOf(this.index).unhealthyAfterMs / 3);
  }
}

/** End the server's side of a stream. */
export function endStream(stream: SimulatedStream, reason: string): void {
  stream.state = closeSession(stream.state, reason);
}

/** A server that takes the connection and does not even send its Challenge is left sooner than one that is busy. */
function patienceOf(stream: SimulatedStream): number {
  return stream.state.kind === "awaiting-hello" ? CONNECT_PATIENCE_MS : WELCOME_PATIENCE_MS;
}
