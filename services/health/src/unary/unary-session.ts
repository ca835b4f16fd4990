import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import type { Watch } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { Logger } from "@rollcall/process";
import { type Farewell, stale } from "../replica/farewell.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { QuietStream } from "../replica/quiet-streams.ts";
import type { Replica } from "../replica/replica.ts";
import type { GreetedStream } from "../stream/stream-host.ts";

/** The method that the proof of a unary Hello names. */
export const REPORT_METHOD = "/rollcall.health.v1.HealthQueryService/ReportHeartbeat";

export interface UnarySessionHost {
  readonly replica: Replica;
  readonly log: Logger;
  /** Told of each heartbeat that took effect; null for nobody. */
  readonly onBeat: ((nodeId: string, sequence: number) => void) | null;
  /** The session has ended, for this reason, which its agent learns with its next call. */
  onEnd(session: UnarySession, node: HeldNode, farewell: Farewell): void;
}

/**
 * The session of an agent that calls instead of holding a stream. To the replica it is a stream like any other: what is
 * told to it waits for the next call, and it ends when the node falls silent.
 */
export class UnarySession implements GreetedStream, QuietStream {
  readonly peer: string;
  /** The node, once the session is open; rejects with why it was not opened. */
  readonly opened: Promise<HeldNode>;
  readonly #host: UnarySessionHost;
  #resolve: (node: HeldNode) => void = () => {};
  #reject: (why: Error) => void = () => {};
  #state: "opening" | "open" | "closed" = "opening";
  #node: HeldNode | null = null;
  #lastSequence = 0;
  #expected: Watch<QuietStream> | null = null;

  constructor(peer: string, host: UnarySessionHost) {
    this.peer = peer;
    this.opened = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#host = host;
  }

  get isOpening(): boolean {
    return this.#state === "opening";
  }

  get proofMethod(): string {
    return REPORT_METHOD;
  }

  /** The highest sequence that took effect; 0 before the first. */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  welcome(node: HeldNode): void {
    this.#state = "open";
    this.#node = node;
    this.#host.log.info({ node: node.id, epoch: node.epoch, peer: this.peer }, "session opened");
    if (node.watch.health !== "HEALTHY") this.#expect(node.watch.thresholds.unhealthyAfterMs);
    this.#resolve(node);
  }

  /** Its next answer carries it. */
  sendMembership(): void {}

  /** Its next answer carries what of them concerns it. */
  sendSettings(): void {}

  /** An agent that calls is not asked for more: it does not listen. */
  sendPace(): void {}

  /** It calls whichever replica it likes. */
  askMove(): boolean {
    return false;
  }

  leave(farewell: Farewell): void {
    if (this.#state === "closed") return;
    const node = this.#node;
    this.#close();
    this.#reject(farewell.error);
    if (node !== null) this.#host.onEnd(this, node, farewell);
  }

  onQuiet(silentMs: number): void {
    this.#expected = null;
    const node = this.#node;
    if (node === null) return;
    this.leave(stale(node.id, silentMs));
    this.#host.replica.broken(node, this);
  }

  /** Let a heartbeat take effect. Throws SEQUENCE_NOT_RISING. */
  beat(node: HeldNode, sequence: number, usage: ResourceUsage | undefined): void {
    if (sequence <= this.#lastSequence) throw notRising(node.id, sequence, this.#lastSequence);
    const isFirst = this.#lastSequence === 0;
    this.#lastSequence = sequence;
    if (isFirst) this.#unexpect();
    this.#host.replica.beat(node, usage, isFirst);
    this.#host.onBeat?.(node.id, sequence);
  }

  /** The agent stops on purpose. */
  goodbye(node: HeldNode, reason: string): void {
    this.#close();
    this.#host.replica.goodbye(node, this, reason);
  }

  #close(): void {
    this.#state = "closed";
    this.#node = null;
    this.#unexpect();
  }

  #expect(withinMs: number): void {
    const { silence } = this.#host.replica;
    this.#expected = silence.streams.expect(this, silence.nowMs(), withinMs);
  }

  #unexpect(): void {
    if (this.#expected !== null) this.#host.replica.silence.streams.settle(this.#expected);
    this.#expected = null;
  }
}

function notRising(node: string, sequence: number, lastSequence: number) {
  const message = `sequence ${sequence} of node ${node} does not follow ${lastSequence}; send a higher one`;
  const metadata = { node, sequence: String(sequence), lastSequence: String(lastSequence) };
  return refuse("SEQUENCE_NOT_RISING", message, { metadata, subject: node });
}
