import { create } from "@bufbuild/protobuf";
import { type Hello, HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { SimulatedStream } from "./simulated-stream.ts";
import type { SimulatedWorkAgent, WorkFrameOfServer } from "./simulated-work.ts";
import { nodeIdOf, policyOf } from "./simulation-options.ts";
import type { StreamAgent, World, WorldAgent } from "./world.ts";

const CONNECT_PATIENCE_MS = 5_000;
const WELCOME_PATIENCE_MS = 20_000;
const LONGEST_ACK_PATIENCE_MS = 20_000;
const RETRY_MS = 2_000;
const MOST_DOUBLINGS = 3;

/**
 * An agent on the virtual network, without sockets and gRPC. It sends its Hello and heartbeats, and leaves a
 * replica that does not acknowledge them. Tests over real connections use the testkit's FakeAgent.
 */
export class SimulatedAgent implements WorldAgent, StreamAgent {
  readonly index: number;
  readonly #world: World;
  readonly #hello: Hello;
  readonly #name: string;
  readonly #work: SimulatedWorkAgent | null;
  #isRunning = false;
  #isStopped = false;
  #life = 0;
  #stream: SimulatedStream | null = null;
  #opening: SimulatedStream | null = null;
  #openedAtMs = 0;
  #lastAckMs = 0;
  #retryAtMs = 0;
  #sequence = 0;
  /** Attempts since the last Welcome. Each attempt doubles the pause before the next, up to a limit. */
  #tries = 0;
  /** Whether the agent was asked to move. The agent tries until it succeeds or its stream ends. */
  #isMoving = false;
  /** The slot of the last attempt; -1 before the first. */
  #slot = -1;

  /**
   * @param isClone whether this is a second agent with a copy of another agent's state directory, on a separate
   *   machine.
   */
  constructor(index: number, world: World, isClone = false) {
    this.index = index;
    this.#world = world;
    this.#name = isClone ? "clone" : "agent";
    const isAwake = () => this.isUp;
    this.#work = (isClone ? world.work?.cloneOf(index, isAwake) : world.work?.agentOf(index, isAwake)) ?? null;
    this.#hello = create(HelloSchema, { nodeId: nodeIdOf(index), runsWork: this.#work !== null });
  }

  /** Whether the agent runs and is not stopped. */
  get isUp(): boolean {
    return this.#isRunning && !this.#isStopped;
  }

  /** Start at a random time within `withinMs`. */
  start(withinMs: number): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#life += 1;
    const life = this.#life;
    this.#hello.instanceId = `${this.#name}-${life}-${this.#world.schedule.nowMs}`;
    const inMs = this.#world.random() * withinMs;
    this.#retryAtMs = this.#world.schedule.nowMs + inMs;
    this.#world.schedule.after(inMs, () => this.#beatInTurn(life));
  }

  /** Crash. The kernel closes the connections. */
  crash(): void {
    this.#isRunning = false;
    this.#work?.crashed();
    this.#life += 1;
    this.#drop(this.#stream);
    this.#drop(this.#opening);
    this.#stream = null;
    this.#opening = null;
    this.#isMoving = false;
  }

  goodbye(): void {
    const stream = this.#stream;
    const isRestarting = this.#work?.isRunning ?? false;
    if (this.isUp && stream !== null) this.#send(stream, () => stream.goodbye(isRestarting));
    this.crash();
  }

  /** Pause: connections stay open, but nothing is sent or read. */
  stop(): void {
    this.#isStopped = true;
  }

  resume(): void {
    this.#isStopped = false;
    if (this.#isRunning && this.#stream !== null) this.#beat(this.#stream);
  }

  /** Open a stream to another replica, and keep the old one until the Welcome. */
  move(): void {
    if (!this.isUp || this.#stream === null || this.#isMoving) return;
    this.#isMoving = true;
    if (this.#opening === null) this.#open();
  }

  /** Handle timeouts and retries; called every second. */
  look(): void {
    if (!this.isUp) return;
    const { nowMs } = this.#world.schedule;
    if (this.#stream !== null && nowMs - this.#lastAckMs >= this.#ackPatienceMs()) {
      this.#drop(this.#stream);
      this.#stream = null;
      this.#work?.closed();
      this.#isMoving = false;
      this.#retryAtMs = nowMs;
    }
    if (this.#opening !== null && nowMs - this.#openedAtMs >= patienceOf(this.#opening)) {
      this.#drop(this.#opening);
      this.#opening = null;
      this.#retryAtMs = nowMs + this.#pauseMs();
    }
    const isWanting = this.#stream === null || this.#isMoving;
    if (isWanting && this.#opening === null && nowMs >= this.#retryAtMs) this.#open();
  }

  onWelcome(stream: SimulatedStream): void {
    if (!this.isUp || stream !== this.#opening) return;
    const old = this.#stream;
    this.#opening = null;
    this.#stream = stream;
    this.#sequence = 0;
    this.#tries = 0;
    this.#isMoving = false;
    this.#lastAckMs = this.#world.schedule.nowMs;
    this.#work?.opened((frame) => stream.work(frame));
    this.#beat(stream);
    this.#drop(old);
  }

  onAck(stream: SimulatedStream): void {
    if (!this.isUp || stream !== this.#stream) return;
    this.#lastAckMs = this.#world.schedule.nowMs;
    this.#work?.seen();
  }

  onWork(stream: SimulatedStream, frame: WorkFrameOfServer): void {
    if (stream === this.#stream) this.#work?.receive(frame);
  }

  readiness(stream: SimulatedStream): "ready" | "later" | "gone" {
    if (stream !== this.#stream && stream !== this.#opening) return "gone";
    return this.isUp && stream === this.#stream ? "ready" : "later";
  }

  onMove(stream: SimulatedStream): void {
    if (stream === this.#stream) this.move();
  }

  /** Called when the replica has ended a stream, with the delay before reconnecting. */
  onEnd(stream: SimulatedStream, retryAfterMs: number): void {
    if (!this.isUp) return;
    if (stream === this.#stream) {
      this.#stream = null;
      this.#work?.closed();
      this.#isMoving = false;
    } else if (stream === this.#opening) this.#opening = null;
    else return;
    this.#retryAtMs = this.#world.schedule.nowMs + retryAfterMs + this.#pauseMs();
  }

  #beatInTurn(life: number): void {
    if (life !== this.#life) return;
    this.#world.schedule.after(policyOf(this.index).heartbeatMs, () => this.#beatInTurn(life));
    if (!this.#isStopped && this.#stream !== null) this.#beat(this.#stream);
  }

  #beat(stream: SimulatedStream): void {
    this.#sequence += 1;
    const sequence = this.#sequence;
    const digest = this.#work?.toldDigest ?? 0n;
    this.#send(stream, () => stream.beat(sequence, digest));
  }

  #open(): void {
    const { slots } = this.#world;
    this.#slot = this.#slot < 0 ? Math.floor(this.#world.random() * slots) : (this.#slot + 1) % slots;
    if (this.#slot === this.#stream?.process.slot) this.#slot = (this.#slot + 1) % slots;
    const slot = this.#slot;
    const process = this.#world.processAt(slot);
    if (process === null) {
      // The connection is refused immediately.
      this.#retryAtMs = this.#world.schedule.nowMs + this.#pauseMs();
      return;
    }
    const stream = new SimulatedStream(this.#world, this, process);
    this.#opening = stream;
    this.#openedAtMs = this.#world.schedule.nowMs;
    this.#send(stream, () => stream.hello(this.#hello));
  }

  /** Close a connection. The replica is notified, unless the network loses the message. */
  #drop(stream: SimulatedStream | null): void {
    if (stream === null) return;
    this.#send(stream, () => stream.gone());
  }

  #send(stream: SimulatedStream, deliver: () => void): void {
    const { process } = stream;
    this.#world.network.sendFrame(this.index, process.slot, () => this.#world.deliver(process, deliver));
  }

  #pauseMs(): number {
    this.#tries += 1;
    return this.#world.random() * RETRY_MS * 2 ** Math.min(this.#tries - 1, MOST_DOUBLINGS);
  }

  #ackPatienceMs(): number {
    return Math.min(LONGEST_ACK_PATIENCE_MS, policyOf(this.index).unhealthyAfterMs / 3);
  }
}

/**
 * How long an agent waits for a stream. It waits longer for a busy server than for one that accepts the
 * connection but sends no Challenge.
 */
function patienceOf(stream: SimulatedStream): number {
  return stream.isKnown ? WELCOME_PATIENCE_MS : CONNECT_PATIENCE_MS;
}
