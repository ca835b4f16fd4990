import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { type Membership, Session, type SessionEffect, type Timing } from "@rollcall/domain";
import type { SettingsTerms } from "../policy/node-terms.ts";
import { type Farewell, helloMissing, refused, stale, tooSlow } from "../replica/farewell.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { QuietStream } from "../replica/quiet-streams.ts";
import { clockSkewMs } from "../stream/hello-fields.ts";
import type { WorkFrame } from "../work/work-frames.ts";
import type { AnnouncedAuthorities } from "./announced-authorities.ts";
import type {
  AgentLink,
  AgentWorkFrame,
  GreetedStream,
  SessionEnd,
  SessionHost,
  WelcomeFacts,
} from "./session-host.ts";

export interface SessionOptions {
  /** The lowest sequence of a Beat: 0 on streams, 1 in calls. */
  readonly firstSequence: number;
  /** Valid for one Hello, the only one of a session. */
  readonly nonce: Uint8Array;
  /** How long the Hello may take, in observed time; null where it opens the session. */
  readonly helloWithinMs: number | null;
}

/** What a Beat says. */
export interface BeatFrame {
  readonly sequence: number;
  readonly usage?: ResourceUsage | undefined;
  /** 0 when the agent does not say. */
  readonly settingsGeneration: number;
  /** 0 when the agent does not say. */
  readonly agentTimeMs: bigint;
  /** See Beat; 0 for a node without executions. */
  readonly executionsDigest: bigint;
}

/** Every other frame. */
export type AgentFrame =
  | { readonly kind: "hello"; readonly hello: Hello }
  | { readonly kind: "node-info"; readonly info: NodeInfo }
  | { readonly kind: "work"; readonly work: AgentWorkFrame }
  | { readonly kind: "goodbye"; readonly reason: string; readonly isRestarting: boolean }
  /** A frame newer than this server. */
  | { readonly kind: "unknown" };

/**
 * One session of an agent over any transport: it takes frames as values, and acts on the replica and the link.
 * `Session` decides, this class carries out.
 */
export class AgentSession implements GreetedStream, QuietStream {
  readonly link: AgentLink;
  readonly #host: SessionHost;
  readonly #machine: Session;
  readonly #helloWithinMs: number | null;
  /** The node while the session is open, else null: the hot path checks nothing else. */
  #node: HeldNode | null = null;
  #nonce: Uint8Array | null;
  #expected: Timing<QuietStream> | null = null;
  /** What this session last announced, or found that its agent has; null before. */
  #announced: AnnouncedAuthorities | null = null;
  /** What the agent had when the session began; empty for an agent that takes none. */
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

  /** Handle a Beat: the hot path. False for an old one. */
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

  /** Handle any other frame. Throws when it breaks the contract's rules; call `fail()` then. */
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

  /** The transport is gone. */
  gone(message: string): void {
    const node = this.#node;
    if (!this.#machine.close()) return;
    this.#finish({ kind: "gone", message });
    if (node !== null) this.#host.replica.broken(node, this);
  }

  /** End the session for a reason found on this side. The replica sees a broken stream. */
  fail(farewell: Farewell): void {
    const node = this.#node;
    this.leave(farewell);
    if (node !== null) this.#host.replica.broken(node, this);
  }

  /** The agent has read everything: send one Ack for all that were skipped. */
  drained(): void {
    if (this.#node === null) return;
    if (this.#machine.hasBeaten) this.link.sendAck(this.#machine.lastSequence, 0);
    if (this.#node.work !== null) this.#host.work?.drained(this.#node);
  }

  // Called by the replica and its desk.

  welcome(node: HeldNode, facts: WelcomeFacts): void {
    // The stream broke while its epoch was taken: the node has no stream.
    if (!this.#machine.open(node.epoch)) {
      this.#host.replica.broken(node, this);
      return;
    }
    this.#node = node;
    this.#host.log.info({ node: node.id, epoch: node.epoch, peer: this.peer }, "session opened");
    // The detector times a healthy node. Any other must first show that it beats.
    if (node.timing.health !== "HEALTHY") this.#expect(node.timing.thresholds.unhealthyAfterMs);
    this.link.sendWelcome(node, facts);
    if (facts.runsWork && this.link.carriesWork) this.#host.work?.opened(node);
    if (this.#host.authorities !== null) this.#announce(this.#host.authorities.current);
    this.#checkReader();
  }

  sendMembership(membership: Membership): void {
    // Before the Welcome there is nothing to correct: it will carry the present value.
    if (this.#node === null) return;
    this.link.sendMembership(membership);
    this.#checkReader();
  }

  sendSettings(settings: SettingsTerms): void {
    const node = this.#node;
    if (node === null) return;
    this.link.sendSettings(settings);
    this.#checkReader();
    // Settings replace everything, the faster pace of a watched node included.
    const paceMs = this.#node === null ? 0 : this.#host.replica.watched.paceMs(node);
    if (paceMs > 0) this.sendPace(paceMs);
  }

  sendPace(intervalMs: number): void {
    // Before the first Beat there is no Ack to send; the first one will carry the interval.
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
    // While its Hello waits for the record, the silence is not the agent's.
    else if (!this.isOpening) this.fail(helloMissing(this.#helloWithinMs ?? silentMs));
  }

  /** Announce what the agent should trust, once for each change. */
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

  /** An agent that does not read its Acks gets one later: an Ack covers every sequence before it. */
  #acknowledge(node: HeldNode): void {
    if (!this.link.isBehind) {
      const { watched, policies } = this.#host.replica;
      this.link.sendAck(this.#machine.lastSequence, watched.paceMs(node) || policies.newPaceMs(node));
    } else this.#checkReader();
  }

  /** For frames that the agent must not miss. Acks are skipped while the agent does not read. */
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
    const { silence } = this.#host.replica;
    this.#expected = silence.streams.expect(this, silence.nowMs(), withinMs);
  }

  #settle(): void {
    if (this.#expected === null) return;
    this.#host.replica.silence.streams.settle(this.#expected);
    this.#expected = null;
  }
}
