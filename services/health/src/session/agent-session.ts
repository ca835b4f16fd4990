import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { type Membership, Session, type SessionEffect, type Timing } from "@rollcall/domain";
import { type Farewell, helloMissing, refused, stale, tooSlow } from "../replica/farewell.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { SettingsTerms } from "../replica/node-terms.ts";
import type { QuietStream } from "../replica/quiet-streams.ts";
import type { WorkFrame } from "../replica/work-frames.ts";
import type { AnnouncedAuthorities } from "./announced-authorities.ts";
import { clockSkewMs } from "./hello-fields.ts";
import type {
  AgentLink,
  AgentWorkFrame,
  GreetedStream,
  SessionEnd,
  SessionHost,
  WelcomeFacts,
} from "./session-host.ts";

export interface SessionOptions {
  /** The lowest sequence of a Beat: 0 on streams, 1 in unary calls. */
  readonly firstSequence: number;
  /** The nonce that the Hello must sign. It is valid for one Hello, and a session has only one. */
  readonly nonce: Uint8Array;
  /** Time limit for the Hello, in observed time; null when the Hello itself opens the session. */
  readonly helloWithinMs: number | null;
}

export interface BeatFrame {
  readonly sequence: number;
  readonly usage?: ResourceUsage | undefined;
  /** 0 when the agent does not send it. */
  readonly settingsGeneration: number;
  /** 0 when the agent does not send it. */
  readonly agentTimeMs: bigint;
  /** See Beat; 0 for a node without executions. */
  readonly executionsDigest: bigint;
}

/** Any frame from an agent except a Beat. */
export type AgentFrame =
  | { readonly kind: "hello"; readonly hello: Hello }
  | { readonly kind: "node-info"; readonly info: NodeInfo }
  | { readonly kind: "work"; readonly work: AgentWorkFrame }
  | { readonly kind: "goodbye"; readonly reason: string; readonly isRestarting: boolean }
  /** A frame of a kind that this server does not know. */
  | { readonly kind: "unknown" };

/**
 * One session of an agent over any transport. It receives decoded frames, and acts on the replica and the
 * link. `Session` decides; this class carries out its decisions.
 */
export class AgentSession implements GreetedStream, QuietStream {
  readonly link: AgentLink;
  readonly #host: SessionHost;
  readonly #machine: Session;
  readonly #helloWithinMs: number | null;
  /** The node while the session is open, otherwise null. The hot path checks nothing else. */
  #node: LiveNode | null = null;
  #nonce: Uint8Array | null;
  #expected: Timing<QuietStream> | null = null;
  /**
   * The authorities of the last announcement, or the current ones if the agent already has them; null before
   * the first check.
   */
  #announced: AnnouncedAuthorities | null = null;
  /**
   * The digest of the agent's authorities, from its Hello or the last announcement; empty for an agent that
   * does not accept authorities.
   */
  #authoritiesDigest = "";

  constructor(link: AgentLink, host: SessionHost, { firstSequence, nonce, helloWithinMs }: SessionOptions) {
    this.link = link;
    this.#host = host;
    this.#machine = new Session(firstSequence);
    this.#helloWithinMs = helloWithinMs;
    this.#nonce = nonce;
    if (helloWithinMs !== null) this.#expect(helloWithinMs);
  }

  get peer(): string {
    return this.link.peer;
  }

  get proofMethod(): string {
    return this.link.proofMethod;
  }

  get isOpening(): boolean {
    return this.#machine.phase === "opening";
  }

  /** The epoch while the session is open; null otherwise. */
  get openEpoch(): number | null {
    return this.#machine.phase === "open" ? this.#machine.epoch : null;
  }

  /** See Session. */
  get lastSequence(): number {
    return this.#machine.lastSequence;
  }

  /**
   * Handle a Beat: the hot path. Returns false for a Beat that is refused, or is old and not acknowledged
   * again.
   */
  beat(beat: BeatFrame): boolean {
    const effect = this.#machine.receive("beat", beat.sequence);
    const node = this.#node;
    if (node === null) {
      this.#refuseIf(effect);
      return false;
    }
    const { replica, clock, onBeat } = this.#host;
    if (beat.agentTimeMs !== 0n) node.clockSkewMs = clockSkewMs(beat, clock.wallMs());
    if (effect.action === "beat") {
      if (effect.isFirst) this.#settle();
      if (beat.settingsGeneration !== 0) replica.policies.acknowledge(node, beat.settingsGeneration);
      replica.beat(node, beat.usage, effect.isFirst);
      if (node.work !== null) this.#host.work?.onDigest(node, beat.executionsDigest);
      if (this.#host.authorities !== null) this.#announce(this.#host.authorities.current);
      onBeat?.(node.id, beat.sequence);
    } else {
      if (!this.link.takesOldBeats) return false;
      replica.heard(node);
    }
    this.#acknowledge(node);
    return true;
  }

  /**
   * Handle any other frame. Throws when the frame breaks the contract's rules; the caller must then call
   * `fail()`.
   */
  receive(frame: AgentFrame): void {
    if (this.#node !== null) this.#host.replica.heard(this.#node);
    const effect = this.#machine.receive(frame.kind);
    switch (effect.action) {
      case "check-hello":
        if (frame.kind === "hello") this.#checkHello(frame.hello);
        return;
      case "node-info":
        if (frame.kind === "node-info" && this.#node !== null) this.#host.onNodeInfo(this.#node, frame.info);
        return;
      case "work":
        if (frame.kind === "work" && this.#node !== null) this.#host.work?.receive(this.#node, frame.work);
        return;
      case "leave":
        if (frame.kind === "goodbye") this.#goodbye(frame);
        return;
      case "refuse":
      case "beat":
      case "acknowledge":
      case "ignore":
        this.#refuseIf(effect);
        return;
    }
  }

  /** End the session because the transport has ended. */
  gone(message: string): void {
    const node = this.#node;
    if (!this.#machine.close()) return;
    this.#finish({ kind: "gone", message });
    if (node !== null) this.#host.replica.broken(node, this);
  }

  /** End the session for a reason found on this side. The replica treats it as a broken stream. */
  fail(farewell: Farewell): void {
    const node = this.#node;
    this.leave(farewell);
    if (node !== null) this.#host.replica.broken(node, this);
  }

  /** Called when the agent has read everything: send one Ack for all skipped ones. */
  drained(): void {
    if (this.#node === null) return;
    if (this.#machine.hasBeaten) this.link.sendAck(this.#machine.lastSequence, 0);
    if (this.#node.work !== null) this.#host.work?.drained(this.#node);
  }

  // The replica and its HelloQueue call the methods below.

  welcome(node: LiveNode, facts: WelcomeFacts): void {
    // The stream broke while the session was opened in the store, so the node has no stream.
    if (!this.#machine.open(node.epoch)) {
      this.#host.replica.broken(node, this);
      return;
    }
    this.#node = node;
    this.#host.log.info({ node: node.id, epoch: node.epoch, peer: this.peer }, "session opened");
    // Set a time limit for the first heartbeat of a node that is not healthy, because the detector times
    // only healthy nodes.
    if (node.timing.health !== "HEALTHY") this.#expect(node.timing.thresholds.unhealthyAfterMs);
    this.link.sendWelcome(node, facts);
    if (facts.runsWork && this.link.carriesWork) this.#host.work?.opened(node);
    if (this.#host.authorities !== null) this.#announce(this.#host.authorities.current);
    this.#checkReader();
  }

  sendMembership(membership: Membership): void {
    // Send nothing before the Welcome, because the Welcome carries the current value.
    if (this.#node === null) return;
    this.link.sendMembership(membership);
    this.#checkReader();
  }

  sendSettings(settings: SettingsTerms): void {
    const node = this.#node;
    if (node === null) return;
    this.link.sendSettings(settings);
    this.#checkReader();
    // Send the shorter interval of a watched node again, because settings replace all intervals.
    const paceMs = this.#node === null ? 0 : this.#host.replica.watched.paceMs(node);
    if (paceMs > 0) this.sendPace(paceMs);
  }

  sendPace(intervalMs: number): void {
    // Send no Ack before the first Beat. The Ack of the first Beat carries the interval.
    if (this.#node === null || !this.#machine.hasBeaten) return;
    this.link.sendAck(this.#machine.lastSequence, intervalMs);
    this.#checkReader();
  }

  sendWork(frame: WorkFrame): boolean {
    if (this.#node === null || this.link.isBehind) return false;
    this.link.sendWork(frame);
    return true;
  }

  askMove(farewell: Farewell): boolean {
    if (this.#node === null || !this.link.sendMove(farewell)) return false;
    this.#checkReader();
    return true;
  }

  leave(farewell: Farewell): void {
    if (this.#machine.close()) this.#finish({ kind: "left", farewell });
  }

  onQuiet(silentMs: number): void {
    this.#expected = null;
    if (this.#node !== null) this.fail(stale(this.#node.id, silentMs));
    // Do not fail the session while its Hello waits for the store, because the agent is not at fault for the
    // silence.
    else if (!this.isOpening) this.fail(helloMissing(this.#helloWithinMs ?? silentMs));
  }

  /** Announce the authorities that the agent should trust, once per change. */
  #announce(current: AnnouncedAuthorities | null): void {
    if (current === this.#announced || this.#authoritiesDigest === "") return;
    this.#announced = current;
    if (current === null || current.digest === this.#authoritiesDigest) return;
    this.#authoritiesDigest = current.digest;
    this.link.sendAuthorities(current);
  }

  #checkHello(hello: Hello): void {
    this.#settle();
    this.#authoritiesDigest = Buffer.from(hello.authoritiesDigest).toString("hex");
    const nonce = this.#nonce;
    this.#nonce = null;
    if (nonce !== null) this.#host.onHello(this, hello, nonce);
  }

  #goodbye({ reason, isRestarting }: Extract<AgentFrame, { readonly kind: "goodbye" }>): void {
    const node = this.#node;
    this.#finish({ kind: "goodbye" });
    if (node === null) return;
    if (isRestarting) this.#host.replica.restarting(node, this, reason);
    else this.#host.replica.goodbye(node, this, reason);
  }

  #refuseIf(effect: SessionEffect): void {
    if (effect.action === "refuse") this.fail(refused(effect.refusal));
  }

  /**
   * Acknowledge all Beats so far. If the agent does not read, skip the Ack: a later one covers every earlier
   * sequence.
   */
  #acknowledge(node: LiveNode): void {
    if (!this.link.isBehind) {
      const { watched, policies } = this.#host.replica;
      this.link.sendAck(this.#machine.lastSequence, watched.paceMs(node) || policies.newPaceMs(node));
    } else this.#checkReader();
  }

  /**
   * End the session if the agent does not read. Called after frames that the agent must not miss, unlike
   * Acks.
   */
  #checkReader(): void {
    if (this.link.isTooSlow) this.fail(tooSlow(this.#node?.id ?? this.peer));
  }

  #finish(end: SessionEnd): void {
    const node = this.#node;
    this.#node = null;
    this.#nonce = null;
    this.#settle();
    this.link.ended(end, node);
  }

  #expect(withinMs: number): void {
    const { detector } = this.#host.replica;
    this.#expected = detector.streams.expect(this, detector.nowMs(), withinMs);
  }

  #settle(): void {
    if (this.#expected === null) return;
    this.#host.replica.detector.streams.settle(this.#expected);
    this.#expected = null;
  }
}
