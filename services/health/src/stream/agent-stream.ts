import { randomBytes } from "node:crypto";
import type { Beat, Goodbye, HeartbeatRequest, Hello, Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  AWAITING_HELLO,
  closeSession,
  decideFrame,
  type Membership,
  NO_SEQUENCE,
  onBeat,
  openSession,
  type SessionState,
  type Watch,
} from "@rollcall/domain";
import { describeError, isCallersFault, mapError, refuse } from "@rollcall/errors";
import { grpcAddressOf, toGrpcStatus } from "@rollcall/rpc";
import { type Farewell, reconnect, stale, tooSlow } from "../replica/farewell.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { QuietStream } from "../replica/quiet-streams.ts";
import { encodeAck } from "./ack-frame.ts";
import { kindOf } from "./frame-kind.ts";
import {
  challengeFrame,
  goAwayFrame,
  membershipFrame,
  settingsFrame,
  type WelcomeFacts,
  welcomeFrame,
} from "./frames.ts";
import { clockSkewMs, toText } from "./hello-fields.ts";
import { Outgoing } from "./outgoing.ts";
import { MOST_GPUS, OVERSIZED, tooLarge, tooManyGpus } from "./oversized.ts";
import type { GreetedStream, HeartbeatCall, StreamHost } from "./stream-host.ts";

/** The method that a Hello's proof names. */
const HEARTBEAT_METHOD = "/rollcall.health.v1.HealthService/Heartbeat";
const NONCE_BYTES = 32;

/** One heartbeat stream of an agent: from its Challenge to its end. */
export class AgentStream implements GreetedStream, QuietStream {
  readonly peer: string;
  readonly #call: HeartbeatCall;
  readonly #outgoing: Outgoing;
  readonly #host: StreamHost;
  readonly #openedAtMs: number;
  #state: SessionState = AWAITING_HELLO;
  /** The node, while the session is open: the hot path asks for nothing else. */
  #node: HeldNode | null = null;
  #lastSequence = NO_SEQUENCE;
  /** Good for one Hello, which is all that a stream takes. */
  #nonce: Uint8Array | null;
  #expected: Watch<QuietStream> | null;

  constructor(call: HeartbeatCall, host: StreamHost) {
    const { replica, limits } = host;
    this.#outgoing = new Outgoing(call, host.clock, limits, () => this.#onDrained());
    this.#call = call;
    this.#host = host;
    this.peer = grpcAddressOf(call, host.clientAddress);
    this.#openedAtMs = host.clock.nowMs();
    this.#nonce = randomBytes(NONCE_BYTES);
    const observedMs = replica.silence.nowMs();
    this.#expected = replica.silence.streams.expect(this, observedMs, limits.helloTimeoutMs);
    call.on("data", (request: HeartbeatRequest) => this.#onRequest(request));
    call.on("end", () => this.#onGone("the agent ended the stream"));
    call.on("cancelled", () => this.#onGone("the stream broke"));
    this.#send(challengeFrame(this.#nonce, host.clusterId()));
  }

  /** Whether it still waits for what becomes of its Hello. */
  get isOpening(): boolean {
    return this.#state.kind === "opening";
  }

  get proofMethod(): string {
    return HEARTBEAT_METHOD;
  }

  /** Take the agent in. */
  welcome(node: HeldNode, facts: Omit<WelcomeFacts, "epoch">): void {
    const next = openSession(this.#state, node.epoch);
    // Gone while its epoch was being taken: what was taken has no stream.
    if (next === null) {
      this.#host.replica.broken(node, this);
      return;
    }
    this.#state = next;
    this.#node = node;
    this.#host.onWelcomed?.(this.#call.getPeer());
    this.#host.log.info({ node: node.id, epoch: node.epoch, peer: this.peer }, "session opened");
    this.#send(welcomeFrame({ ...facts, epoch: node.epoch }));
    // A healthy node is timed by the detector. Any other has to show first that it beats.
    if (node.watch.health !== "HEALTHY") this.#expect(node.watch.thresholds.unhealthyAfterMs);
  }

  sendMembership(membership: Membership): void {
    // Before the Welcome there is nothing to correct: it will carry what holds then.
    if (this.#state.kind === "open") this.#send(membershipFrame(membership));
  }

  sendSettings(settings: Settings): void {
    if (this.#state.kind !== "open") return;
    this.#send(settingsFrame(settings));
    // Settings are whole, and so end the faster pace of a node that is watched.
    const paceMs = this.#node === null ? 0 : this.#host.replica.watched.paceMs(this.#node);
    if (paceMs > 0) this.sendPace(paceMs);
  }

  sendPace(intervalMs: number): void {
    // Before the first Beat there is nothing to acknowledge: its Ack will carry the interval.
    if (this.#node === null || this.#lastSequence === NO_SEQUENCE) return;
    this.#send(encodeAck(this.#lastSequence, intervalMs));
  }

  askMove(farewell: Farewell): boolean {
    if (this.#state.kind !== "open") return false;
    this.#send(goAwayFrame(farewell));
    return true;
  }

  leave(farewell: Farewell): void {
    if (this.#state.kind === "closed") return;
    const { code, reason = "INTERNAL", message } = describeError(farewell.error);
    this.#close(reason, message, isCallersFault({ code, reason }));
    this.#outgoing.fail(goAwayFrame(farewell), toGrpcStatus(farewell.error));
  }

  onQuiet(silentMs: number): void {
    this.#expected = null;
    const node = this.#node;
    if (node !== null) {
      this.#end(stale(node.id, silentMs));
    } else if (!this.isOpening) {
      // While its Hello waits for the record, silence is not the agent's.
      const seconds = this.#host.limits.helloTimeoutMs / 1000;
      this.#end(reconnect(refuse("DEADLINE_EXCEEDED", `no Hello came within ${seconds} s`)));
    }
  }

  #onRequest(request: HeartbeatRequest): void {
    const { frame } = request;
    try {
      if (request === OVERSIZED) throw tooLarge();
      if (frame.case === "beat" && this.#node !== null) this.#onBeat(this.#node, frame.value);
      else this.#onFrame(frame);
    } catch (error) {
      const mapped = mapError(error);
      if (describeError(mapped).reason === "INTERNAL") {
        this.#host.log.error({ err: error, peer: this.peer }, "frame failed");
      }
      this.#end(reconnect(mapped));
    }
  }

  #onBeat(node: HeldNode, beat: Beat): void {
    const { sequence, usage } = beat;
    if (beat.agentTimeMs !== 0n) node.clockSkewMs = clockSkewMs(beat, this.#host.clock.wallMs());
    if (usage !== undefined && usage.gpus.length > MOST_GPUS) throw tooManyGpus();
    if (onBeat(sequence, this.#lastSequence)) {
      const isFirst = this.#lastSequence === NO_SEQUENCE;
      this.#lastSequence = sequence;
      if (isFirst) this.#settle();
      if (beat.settingsGeneration !== 0) {
        this.#host.replica.policies.acknowledge(node, beat.settingsGeneration);
      }
      this.#host.replica.beat(node, usage, isFirst);
      this.#host.onBeat?.(node.id, sequence);
    } else {
      this.#host.replica.heard(node);
    }
    this.#acknowledge(node);
  }

  /**
   * An agent that does not read its Acks gets one for all of them once it does: an Ack is for everything up to its
   * sequence.
   */
  #acknowledge(node: HeldNode): void {
    if (!this.#outgoing.isBehind) {
      const { watched, policies } = this.#host.replica;
      const paceMs = watched.paceMs(node) || policies.newPaceMs(node);
      this.#outgoing.send(encodeAck(this.#lastSequence, paceMs));
    } else if (this.#outgoing.isTooSlow) this.#end(tooSlow(node.id));
  }

  #onFrame(frame: HeartbeatRequest["frame"]): void {
    if (this.#node !== null) this.#host.replica.heard(this.#node);
    const kind = kindOf(frame);
    if (kind === null) {
      this.#onUnknownFrame();
      return;
    }
    const decision = decideFrame(this.#state, kind);
    switch (decision.action) {
      case "authenticate":
        this.#state = decision.next;
        if (frame.case === "hello") this.#onHello(frame.value);
        return;
      case "node-info":
        if (frame.case === "nodeInfo" && this.#node !== null) {
          this.#host.onNodeInfo(this.#node, frame.value);
        }
        return;
      case "leave":
        if (frame.case === "goodbye") this.#onGoodbye(frame.value);
        return;
      case "refuse": {
        const { reason, message, metadata } = decision.refusal;
        throw refuse(reason, message, { metadata });
      }
      case "beat":
      case "acknowledge":
      case "ignore":
        return;
    }
  }

  /** An agent newer than this server may say what is unknown here; before its Hello nobody is an agent. */
  #onUnknownFrame(): void {
    if (this.#state.kind !== "awaiting-hello") return;
    throw refuse("HELLO_REQUIRED", "the first frame of a heartbeat stream must be a Hello");
  }

  #onHello(hello: Hello): void {
    this.#settle();
    const nonce = this.#nonce;
    this.#nonce = null;
    if (nonce !== null) this.#host.onHello(this, hello, nonce);
  }

  #onGoodbye({ reason }: Goodbye): void {
    const node = this.#node;
    this.#close("AGENT_SHUTDOWN", "the agent said goodbye");
    if (node !== null) this.#host.replica.goodbye(node, this, toText(reason));
    this.#outgoing.end();
  }

  #onGone(message: string): void {
    const node = this.#node;
    if (this.#state.kind === "closed") return;
    this.#close("STREAM_BROKEN", message);
    if (node !== null) this.#host.replica.broken(node, this);
    this.#outgoing.end();
  }

  /** Leave for a reason found here, which the replica learns as a stream that is gone. */
  #end(farewell: Farewell): void {
    const node = this.#node;
    this.leave(farewell);
    if (node !== null) this.#host.replica.broken(node, this);
  }

  #close(reason: string, message: string, isFault = false): void {
    const node = this.#node;
    const durationMs = Math.round(this.#host.clock.nowMs() - this.#openedAtMs);
    this.#state = closeSession(this.#state, reason);
    this.#node = null;
    this.#nonce = null;
    this.#settle();
    const { log, strangers } = this.#host;
    const fields = { reason, detail: message, duration_ms: durationMs };
    if (node !== null) {
      log.info({ node: node.id, epoch: node.epoch, peer: this.peer, ...fields }, "session closed");
      return;
    }
    const line = { level: "info", peer: this.peer, what: reason, fields, isFault } as const;
    strangers.write({ ...line, message: "stream closed without a session" });
  }

  #expect(withinMs: number): void {
    const { replica } = this.#host;
    this.#expected = replica.silence.streams.expect(this, replica.silence.nowMs(), withinMs);
  }

  #settle(): void {
    if (this.#expected === null) return;
    this.#host.replica.silence.streams.settle(this.#expected);
    this.#expected = null;
  }

  #onDrained(): void {
    if (this.#node !== null && this.#lastSequence !== NO_SEQUENCE) {
      this.#outgoing.send(encodeAck(this.#lastSequence));
    }
  }

  /** For frames that an agent may not miss. Acks stop by themselves where nobody reads them. */
  #send(frame: Buffer): void {
    this.#outgoing.send(frame);
    if (this.#outgoing.isTooSlow) this.#end(tooSlow(this.#node?.id ?? this.peer));
  }
}
