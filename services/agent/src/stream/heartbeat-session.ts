import { create } from "@bufbuild/protobuf";
import {
  type Authorities,
  GoodbyeKind,
  type HeartbeatRequest,
  HeartbeatRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeKeyPair } from "@rollcall/identity";
import type { Clock } from "@rollcall/process";
import { Alarm } from "../alarm.ts";
import { NO_TOTALS, type SentTotals, toResourceUsage } from "../convert.ts";
import type { NodeInfoKeeper } from "../info/node-info-keeper.ts";
import type { AgentTrust } from "../network/agent-trust.ts";
import type { UsageFeed } from "../usage/usage-feed.ts";
import { SessionWork, type WorkFeed } from "../work/session-work.ts";
import type { HeartbeatStream, HeartbeatTransport } from "./heartbeat-transport.ts";
import { type AgentIdentity, makeHello } from "./hello.ts";
import type { Pace } from "./pace.ts";
import { beginSession, nextDueMs, stepSession } from "./session-machine.ts";
import type { SessionEffect, SessionEvent, SessionNews, SessionState } from "./session-state.ts";

export interface SessionServices {
  readonly clock: Clock;
  readonly transport: HeartbeatTransport;
  readonly identity: AgentIdentity;
  readonly info: NodeInfoKeeper;
  readonly usage: UsageFeed;
  /** The longest time between two checks of whether the machine has changed. */
  readonly infoCheckMs: number;
  /** The machine's executions. Default: the node runs no work. */
  readonly work?: WorkFeed | null;
  /** How the agent recognizes servers. Default: it ignores announced authorities. */
  readonly trust?: Pick<AgentTrust, "digest" | "hear">;
}

/** How to open a session. */
export interface SessionOptions {
  readonly endpoint: string;
  readonly pace: Pace;
  /** Called for each event, in order, never before the constructor returns. The callback must not throw. */
  readonly onNews: (session: HeartbeatSession, news: SessionNews) => void;
}

/** How long a Hello waits for the digest. A vendor tool that hangs must delay only the report. */
const DIGEST_LIMIT_MS = 2_000;

type FrameInit = NonNullable<NonNullable<Parameters<typeof create<typeof HeartbeatRequestSchema>>[1]>["frame"]>;

/** One heartbeat stream. It carries out the decisions of stepSession(). */
export class HeartbeatSession {
  readonly endpoint: string;
  /** The key pair that signs the stream's Hello. */
  readonly keyPair: NodeKeyPair;
  readonly #services: SessionServices;
  readonly #onNews: SessionOptions["onNews"];
  readonly #stream: HeartbeatStream;
  readonly #alarm: Alarm;
  #state: SessionState;
  /** The totals that the last Beat contained. The next Beat omits them. */
  #sent: SentTotals = NO_TOTALS;
  /** The session's exchange about executions; null on a node that runs no work. */
  readonly #work: SessionWork | null;
  readonly #unsubscribe: () => void;

  constructor(services: SessionServices, { endpoint, pace, onNews }: SessionOptions) {
    const { clock, identity, transport, infoCheckMs } = services;
    this.#services = services;
    this.#onNews = onNews;
    this.endpoint = endpoint;
    this.keyPair = identity.keys.toUse();
    const work = services.work ?? null;
    this.#work = work && new SessionWork(work, clock);
    this.#state = beginSession({ pace, infoCheckMs, nowMs: clock.nowMs(), work });
    this.#unsubscribe = work?.subscribe((change) => this.#dispatch({ kind: "work-changed", ...change })) ?? (() => {});
    this.#alarm = new Alarm(clock, () => this.#dispatch({ kind: "due" }));
    this.#stream = transport.open(endpoint, {
      onFrame: ({ frame }) => this.#dispatch({ kind: "frame", frame }),
      onEnd: (error) => this.#dispatch({ kind: "stream-ended", error }),
    });
    this.#setAlarm();
  }

  /** The intervals in force. */
  get pace(): Pace {
    return this.#state.pace;
  }

  /** Close without a goodbye, because another stream has taken over, or no server can receive it. */
  drop(): void {
    this.#dispatch({ kind: "drop" });
  }

  /** Send a goodbye, and close once the server has acknowledged it, after `limitMs` at the latest. */
  goodbye(reason: string, limitMs: number): void {
    const leavesWork = this.#services.work?.isRunning ?? false;
    this.#dispatch({ kind: "goodbye", reason, limitMs, leavesWork });
  }

  /** Report the known state of the node now, if it has changed. */
  look(): void {
    this.#dispatch({ kind: "look" });
  }

  #dispatch(event: SessionEvent): void {
    const { state, effects } = stepSession(this.#state, event, this.#services.clock.nowMs());
    this.#state = state;
    for (const effect of effects) this.#carryOut(effect);
    this.#setAlarm();
  }

  #setAlarm(): void {
    const dueMs = nextDueMs(this.#state);
    if (dueMs === null) this.#alarm.clear();
    else this.#alarm.setAt(dueMs);
  }

  #carryOut(effect: SessionEffect): void {
    const { usage, identity, info } = this.#services;
    switch (effect.kind) {
      case "measure":
        usage.measure();
        return;
      case "describe":
        void this.#digestInTime().then((digest) =>
          this.#dispatch({ kind: "described", challenge: effect.challenge, digest }),
        );
        return;
      case "read-info": {
        const { refresh, isWanted } = effect;
        const snapshot = refresh ? info.refresh() : info.current();
        void snapshot.then((it) => this.#dispatch({ kind: "info-read", ...it, isWanted }));
        return;
      }
      case "send-hello": {
        const { challenge, digest, tellsTime } = effect;
        const hello = makeHello(identity, this.keyPair, challenge, digest);
        const runsWork = this.#state.reports !== null;
        const { digest: authoritiesDigest = new Uint8Array() } = this.#services.trust ?? {};
        const agentTimeMs = this.#wallMs(tellsTime);
        this.#send({ case: "hello", value: { ...hello, runsWork, agentTimeMs, authoritiesDigest } });
        return;
      }
      case "send-beat": {
        const { sequence, settingsGeneration, intervalMs, tellsTime } = effect;
        const { usage: message, sent } = toResourceUsage(usage.latest(intervalMs), this.#sent);
        this.#sent = sent;
        const agentTimeMs = this.#wallMs(tellsTime);
        const executionsDigest = this.#work?.toldDigest ?? 0n;
        const value = { sequence, usage: message, settingsGeneration, agentTimeMs, executionsDigest };
        this.#send({ case: "beat", value });
        return;
      }
      case "send-info":
        this.#send({ case: "nodeInfo", value: effect.info });
        return;
      case "send-report":
        for (const value of this.#work?.report(effect.number, effect.ids) ?? []) {
          this.#send({ case: "executionReport", value });
        }
        return;
      case "send-want-specs": {
        const digests = effect.digests.map((digest) => Buffer.from(digest, "hex"));
        this.#send({ case: "wantSpecs", value: { digests } });
        return;
      }
      case "send-goodbye": {
        const kind = effect.leavesWork ? GoodbyeKind.RESTARTING : GoodbyeKind.STOPPING;
        this.#send({ case: "goodbye", value: { reason: effect.reason, kind } });
        this.#stream.finish();
        return;
      }
      case "cancel":
        this.#work?.end();
        this.#unsubscribe();
        this.#stream.cancel();
        return;
      case "tell":
        if (effect.news.kind === "authorities") this.#hearAuthorities(effect.news.authorities);
        this.#work?.hear(effect.news, () => this.#stream.openOutput());
        this.#onNews(this, effect.news);
        return;
    }
  }

  /** Pass on announced authorities, but only over a verified connection. */
  #hearAuthorities({ certificates }: Authorities): void {
    const { peerChain } = this.#stream;
    if (peerChain.length > 0) void this.#services.trust?.hear(certificates, peerChain);
  }

  /**
   * The digest of the node's description. It is empty if the machine takes too long to read; the server then requests
   * the description.
   */
  async #digestInTime(): Promise<Uint8Array> {
    const { clock, info } = this.#services;
    const limit = new AbortController();
    const late = clock.sleep(DIGEST_LIMIT_MS, limit.signal).then(
      () => new Uint8Array(),
      () => new Uint8Array(),
    );
    const digest = await Promise.race([info.current().then((it) => it.digest), late]);
    limit.abort();
    return digest;
  }

  /** Milliseconds since 1970, or 0 if the frame does not carry the time. */
  #wallMs(tellsTime: boolean): bigint {
    return tellsTime ? BigInt(Math.trunc(this.#services.clock.wallMs())) : 0n;
  }

  #send(frame: FrameInit): void {
    const request: HeartbeatRequest = create(HeartbeatRequestSchema, { frame });
    this.#stream.send(request);
  }
}
