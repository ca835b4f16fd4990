import { GoodbyeKind, type HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Membership } from "@rollcall/domain";
import { CODE_OF_REASON, describeError, isCallersFault, mapError } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import type { AnonymousLog, FrameCall, FrameReader } from "@rollcall/rpc";
import type { Farewell } from "../replica/farewell.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { SettingsTerms } from "../replica/node-terms.ts";
import type { WorkFrame } from "../replica/work-frames.ts";
import { type AgentFrame, AgentSession } from "../session/agent-session.ts";
import type { AnnouncedAuthorities } from "../session/announced-authorities.ts";
import { errorOf, farewellFrom } from "../session/farewell-error.ts";
import { toText } from "../session/hello-fields.ts";
import type { AgentLink, SessionEnd, SessionHost, WelcomeFacts } from "../session/session-host.ts";
import { encodeAck } from "./ack-frame.ts";
import {
  authoritiesFrame,
  challengeFrame,
  goAwayFrame,
  membershipFrame,
  settingsFrame,
  welcomeFrame,
  workFrame,
} from "./frames.ts";
import { nextNonce } from "./nonces.ts";
import { type DrainListener, Outgoing, type OutgoingLimits } from "./outgoing.ts";
import { checkParts, refusalOf } from "./oversized.ts";

/** A call of HealthService.Heartbeat. */
export type HeartbeatCall = FrameCall<HeartbeatRequest>;

/** The dependencies of a stream. */
export interface StreamHost extends SessionHost {
  readonly clock: Clock;
  /** Reports streams that never had a session. */
  readonly anonymousClients: AnonymousLog;
  readonly limits: StreamLimits;
  clusterId(): string;
  /** The id of the store's history. Farewells carry it. */
  logId(): string;
}

export interface StreamLimits extends OutgoingLimits {
  /** Time limit for the Hello on a new stream. */
  readonly helloTimeoutMs: number;
}

export const DEFAULT_STREAM_LIMITS: StreamLimits = {
  helloTimeoutMs: 10_000,
  unreadTimeoutMs: 10_000,
  maxUnreadFrames: 256,
};

/** The method name in a Hello's proof. */
const HEARTBEAT_METHOD = "/rollcall.health.v1.HealthService/Heartbeat";

/** A heartbeat stream of one agent. Carries a session over gRPC, from the Challenge until the stream ends. */
export class AgentStream implements AgentLink, DrainListener, FrameReader<HeartbeatRequest> {
  readonly peer: string;
  readonly #call: HeartbeatCall;
  readonly #outgoing: Outgoing;
  readonly #host: StreamHost;
  readonly #session: AgentSession;
  readonly #openedAtMs: number;

  constructor(call: HeartbeatCall, host: StreamHost) {
    this.#outgoing = new Outgoing(call, host.clock, host.limits, this);
    this.#call = call;
    this.#host = host;
    this.peer = call.peer;
    this.#openedAtMs = host.clock.nowMs();
    const nonce = nextNonce();
    const { helloTimeoutMs: helloWithinMs } = host.limits;
    this.#session = new AgentSession(this, host, { firstSequence: 0, nonce, helloWithinMs });
    this.#outgoing.send(challengeFrame(nonce, host.clusterId()));
  }

  get proofMethod(): string {
    return HEARTBEAT_METHOD;
  }

  get takesOldBeats(): boolean {
    return true;
  }

  get carriesWork(): boolean {
    return true;
  }

  drained(): void {
    this.#session.drained();
  }

  onHalfClose(): void {
    this.#session.gone("the agent ended the stream");
  }

  onGone(): void {
    this.#session.gone("the stream broke");
  }

  get isBehind(): boolean {
    return this.#outgoing.isBehind;
  }

  get isTooSlow(): boolean {
    return this.#outgoing.isTooSlow;
  }

  sendWelcome(node: LiveNode, facts: WelcomeFacts): void {
    this.#call.identified();
    this.#outgoing.send(welcomeFrame(node.epoch, facts));
  }

  sendAck(sequence: number, nextIntervalMs: number): void {
    this.#outgoing.send(encodeAck(sequence, nextIntervalMs));
  }

  sendMembership(membership: Membership): void {
    this.#outgoing.send(membershipFrame(membership));
  }

  sendSettings(settings: SettingsTerms): void {
    this.#outgoing.send(settingsFrame(settings));
  }

  sendWork(frame: WorkFrame): void {
    this.#outgoing.send(workFrame(frame));
  }

  sendAuthorities({ certificates }: AnnouncedAuthorities): void {
    this.#outgoing.send(authoritiesFrame(certificates));
  }

  sendMove(farewell: Farewell): boolean {
    this.#outgoing.send(goAwayFrame(farewell, this.#host.logId()));
    return true;
  }

  ended(end: SessionEnd, node: LiveNode | null): void {
    switch (end.kind) {
      case "left": {
        const { reason, message } = end.farewell;
        const isFault = isCallersFault({ code: CODE_OF_REASON[reason], reason });
        this.#logEnd(node, { reason, detail: message }, isFault);
        this.#outgoing.fail(goAwayFrame(end.farewell, this.#host.logId()), errorOf(end.farewell));
        return;
      }
      case "goodbye":
        this.#logEnd(node, { reason: "AGENT_SHUTDOWN", detail: "the agent is stopping" });
        break;
      case "gone":
        this.#logEnd(node, { reason: "STREAM_BROKEN", detail: end.message });
        break;
    }
    this.#outgoing.end();
  }

  onFrame(request: HeartbeatRequest): void {
    const { frame } = request;
    try {
      const refusal = refusalOf(request);
      if (refusal !== null) throw refusal;
      if (frame.case === "beat") {
        checkParts(frame.value.usage);
        this.#session.beat(frame.value);
      } else {
        this.#session.receive(toFrame(frame));
      }
    } catch (error) {
      const mapped = mapError(error);
      if (describeError(mapped).reason === "INTERNAL") {
        this.#host.log.error({ err: error, peer: this.peer }, "frame failed");
      }
      this.#session.fail(farewellFrom(mapped));
    }
  }

  #logEnd(node: LiveNode | null, why: { readonly reason: string; readonly detail: string }, isFault = false): void {
    const { log, anonymousClients, clock } = this.#host;
    const { peer } = this;
    const fields = { duration_ms: Math.round(clock.nowMs() - this.#openedAtMs), ...why };
    if (node !== null) {
      log.info({ node: node.id, epoch: node.epoch, peer, ...fields }, "session closed");
      return;
    }
    const line = { level: "info", peer, what: why.reason, fields, isFault } as const;
    anonymousClients.write({ ...line, message: "stream closed without a session" });
  }
}

function toFrame(frame: Exclude<HeartbeatRequest["frame"], { case: "beat" }>): AgentFrame {
  switch (frame.case) {
    case "hello":
      return { kind: "hello", hello: frame.value };
    case "nodeInfo":
      return { kind: "node-info", info: frame.value };
    case "goodbye":
      return {
        kind: "goodbye",
        reason: toText(frame.value.reason),
        isRestarting: frame.value.kind === GoodbyeKind.RESTARTING,
      };
    case "executionReport":
      return { kind: "work", work: { kind: "report", report: frame.value } };
    case "wantSpecs":
      return { kind: "work", work: { kind: "want-specs", digests: frame.value.digests } };
    case undefined:
      return { kind: "unknown" };
  }
}
