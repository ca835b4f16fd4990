import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ReportHeartbeatRequestSchema,
  type ReportHeartbeatResponse,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { type Farewell, farewellFrom } from "@rollcall/health/parts";
import { nodeIdOf, policyOf } from "./simulation-options.ts";
import type { World, WorldAgent } from "./world.ts";

const PATIENCE_MS = 8_000;
const RETRY_MS = 2_000;
const MOST_DOUBLINGS = 3;
/** Number of consecutive failed calls after which the caller opens another session. */
const MOST_FAILURES = 3;

/** The kind of a call. */
type Step = NonNullable<MessageInitShape<typeof ReportHeartbeatRequestSchema>["step"]>;

/** A call that waits for its response. */
interface Pending {
  readonly isOpening: boolean;
  readonly askedAtMs: number;
}

/**
 * An agent that uses unary calls instead of a stream. It calls the replicas in rotation, whichever holds its session.
 */
export class SimulatedCaller implements WorldAgent {
  readonly index: number;
  readonly #world: World;
  readonly #nodeId: string;
  #isRunning = false;
  #isStopped = false;
  #life = 0;
  /** The token of the session; null without a session. */
  #token: string | null = null;
  #sequence = 0;
  #pending: Pending | null = null;
  #failures = 0;
  /** When to retry after a failed call; null after a successful one. */
  #retryAtMs: number | null = null;
  #slot: number;

  constructor(index: number, world: World) {
    this.index = index;
    this.#world = world;
    this.#nodeId = nodeIdOf(index);
    this.#slot = index % world.slots;
  }

  get isUp(): boolean {
    return this.#isRunning && !this.#isStopped;
  }

  /** Start at a random time within `withinMs`. */
  start(withinMs: number): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#life += 1;
    const life = this.#life;
    const inMs = this.#world.random() * withinMs;
    this.#retryAtMs = this.#world.schedule.nowMs + inMs;
    this.#world.schedule.after(inMs, () => this.#beatInTurn(life));
  }

  /** Die without notifying any replica. */
  crash(): void {
    this.#isRunning = false;
    this.#life += 1;
    this.#token = null;
    this.#pending = null;
    this.#failures = 0;
  }

  goodbye(): void {
    if (this.isUp && this.#token !== null) {
      this.#call({ case: "goodbye", value: { sessionToken: this.#token } });
    }
    this.crash();
  }

  stop(): void {
    this.#isStopped = true;
  }

  resume(): void {
    this.#isStopped = false;
    if (this.#isRunning) this.#beat();
  }

  /** Agents with unary calls are never asked to move. */
  move(): void {}

  /** Handle timeouts and retries. Must be called every second. */
  look(): void {
    if (!this.isUp) return;
    const { nowMs } = this.#world.schedule;
    if (this.#pending !== null && nowMs - this.#pending.askedAtMs >= PATIENCE_MS) this.#failed(0);
    if (this.#pending !== null || this.#retryAtMs === null || nowMs < this.#retryAtMs) return;
    this.#retryAtMs = null;
    if (this.#token === null) this.#open();
    else this.#beat();
  }

  #beatInTurn(life: number): void {
    if (life !== this.#life) return;
    this.#world.schedule.after(policyOf(this.index).heartbeatMs, () => this.#beatInTurn(life));
    if (!this.#isStopped) this.#beat();
  }

  #open(): void {
    this.#call({ case: "open", value: { hello: { nodeId: this.#nodeId } } });
  }

  #beat(): void {
    if (this.#token === null || this.#pending !== null) return;
    this.#sequence += 1;
    this.#call({ case: "beat", value: { sessionToken: this.#token, sequence: this.#sequence } });
  }

  #call(step: Step): void {
    const { slots, schedule, network } = this.#world;
    const pending = { isOpening: step.case === "open", askedAtMs: schedule.nowMs };
    this.#pending = pending;
    this.#slot = (this.#slot + 1) % slots;
    const slot = this.#slot;
    const process = this.#world.processAt(slot);
    if (process === null) {
      // The connection is refused immediately.
      this.#failed(0);
      return;
    }
    const request = create(ReportHeartbeatRequestSchema, { nodeId: this.#nodeId, step });
    const reply = (settle: () => void) => {
      network.sendFrame(this.index, slot, () => {
        if (this.isUp && this.#pending === pending) settle();
      });
    };
    let hasArrived = false;
    const arrive = () => {
      // Drop a duplicate of a call that opens a session, because the first call that carries a nonce uses up the
      // challenge.
      if (pending.isOpening && hasArrived) return;
      hasArrived = true;
      process.report(request).then(
        (answer) => reply(() => (answer.ok ? this.#answered(answer.response) : this.#refused(answer.farewell))),
        (error: unknown) => reply(() => this.#refused(farewellFrom(error))),
      );
    };
    network.sendFrame(this.index, slot, () => this.#world.deliver(process, arrive));
  }

  #answered({ sessionToken }: ReportHeartbeatResponse): void {
    const isOpened = this.#pending?.isOpening === true;
    this.#pending = null;
    this.#failures = 0;
    if (!isOpened) return;
    this.#token = sessionToken;
    this.#sequence = 0;
    this.#beat();
  }

  #refused({ reason, message, retryAfterMs = 0 }: Farewell): void {
    switch (reason) {
      case "SEQUENCE_NOT_RISING":
        // The network duplicated the call and lost the response to the first copy.
        this.#pending = null;
        return;
      case "OWNER_UNAVAILABLE":
        this.#failed(retryAfterMs);
        return;
      case "SESSION_SUPERSEDED":
      case "STREAM_STALE":
      case "SERVER_SHUTTING_DOWN":
        this.#token = null;
        this.#failed(retryAfterMs);
        return;
      default:
        if (this.#pending?.isOpening !== true) this.#world.invariants.note(`a call was refused: ${reason} ${message}`);
        this.#failed(retryAfterMs);
    }
  }

  /** Retry; after several failures, open another session. */
  #failed(retryAfterMs: number): void {
    this.#pending = null;
    this.#failures += 1;
    if (this.#failures >= MOST_FAILURES) this.#token = null;
    const pauseMs = this.#world.random() * RETRY_MS * 2 ** Math.min(this.#failures - 1, MOST_DOUBLINGS);
    this.#retryAtMs = this.#world.schedule.nowMs + retryAfterMs + pauseMs;
  }
}
