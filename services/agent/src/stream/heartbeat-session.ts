import { create } from "@bufbuild/protobuf";
import {
  type GoAway,
  GoAwayAction,
  GoAwaySchema,
  type HeartbeatResponse,
  type Settings,
  type Welcome,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Membership } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { NodeKeyPair } from "@rollcall/identity";
import type { Clock } from "@rollcall/process";
import { Alarm } from "../alarm.ts";
import { NO_TOTALS, type SentTotals, toResourceUsage } from "../convert.ts";
import type { NodeInfoKeeper } from "../info/node-info-keeper.ts";
import type { UsageFeed } from "../usage/usage-feed.ts";
import { digestInTime } from "./digest-in-time.ts";
import type { HeartbeatStream, HeartbeatTransport } from "./heartbeat-transport.ts";
import { type AgentIdentity, makeHello } from "./hello.ts";
import { InfoReports } from "./info-reports.ts";
import { type Pace, paceAfter, paceAfterAck, silentAtMs } from "./pace.ts";
import { type FrameInit, requestFrame } from "./request-frame.ts";
import { endOfGoAway, endOfStatus, type SessionEnd } from "./session-end.ts";
import { TimeReport } from "./time-report.ts";

/** What a session works with. */
export interface SessionDeps {
  readonly clock: Clock;
  readonly transport: HeartbeatTransport;
  readonly identity: AgentIdentity;
  readonly info: NodeInfoKeeper;
  readonly usage: UsageFeed;
  /** The longest time between two looks at whether the machine has changed. */
  readonly infoCheckMs: number;
  readonly events: SessionEvents;
}

/** What a session tells while it lives. None of these may throw. */
interface SessionEvents {
  onMembership(membership: Membership): void;
  /** What to keep to, as a Welcome says first and the server whenever it changes. */
  onSettings(settings: Settings): void;
  /** A beat was acknowledged. */
  onAck(): void;
}

/** How the opening of a session went. */
export type Opening =
  | { readonly ok: true; readonly welcome: Welcome }
  | { readonly ok: false; readonly end: SessionEnd };

/** A new connection that has not brought a Challenge after this is given up: TCP would wait for minutes. */
const CONNECT_TIMEOUT_MS = 5_000;

/** A Welcome takes one transaction, shared with others when many agents come at once. */
const WELCOME_TIMEOUT_MS = 20_000;

type Phase = "connecting" | "greeting" | "open" | "leaving" | "ended";

/** One heartbeat stream, from the connection to its end. */
export class HeartbeatSession {
  /** Resolves with the Welcome, or with why there was none. */
  readonly opened: Promise<Opening>;
  /** Resolves when the stream is over, whoever ended it. */
  readonly ended: Promise<SessionEnd>;
  /** Resolves when the server asks to move: to open another stream, and to leave this one after its Welcome. */
  readonly moveAsked: Promise<GoAway>;

  /** The key that its Hello is signed with. */
  readonly keyPair: NodeKeyPair;

  readonly #deps: SessionDeps;
  readonly #stream: HeartbeatStream;
  readonly #beatAlarm: Alarm;
  readonly #measureAlarm: Alarm;
  /** Connecting and greeting take too long, or Acks stay away. */
  readonly #patienceAlarm: Alarm;
  readonly #reports: InfoReports;
  readonly #time: TimeReport;
  #settleOpened: (opening: Opening) => void = () => {};
  #settleEnded: (end: SessionEnd) => void = () => {};
  #settleMoveAsked: (goAway: GoAway) => void = () => {};
  #phase: Phase = "connecting";
  #pace: Pace;
  #sequence = 0;
  #sent: SentTotals = NO_TOTALS;
  #lastBeatAtMs = 0;
  #lastAckAtMs = 0;
  #unansweredSinceMs: number | undefined;
  /** Of the settings that are kept to, and of those that the server knows to be. */
  #settingsGeneration = 0;
  #toldGeneration = 0;

  constructor(deps: SessionDeps, endpoint: string, pace: Pace) {
    this.#deps = deps;
    this.#pace = pace;
    this.#time = new TimeReport(deps.clock);
    this.keyPair = deps.identity.keys.toUse();
    this.opened = new Promise((resolve) => {
      this.#settleOpened = resolve;
    });
    this.ended = new Promise((resolve) => {
      this.#settleEnded = resolve;
    });
    this.moveAsked = new Promise((resolve) => {
      this.#settleMoveAsked = resolve;
    });
    this.#beatAlarm = new Alarm(deps.clock, () => this.#beat());
    this.#measureAlarm = new Alarm(deps.clock, () => deps.usage.measure());
    this.#patienceAlarm = new Alarm(deps.clock, () => this.#loseHope());
    this.#reports = new InfoReports(deps, (info) => this.#send({ case: "nodeInfo", value: info }));
    this.#patienceAlarm.set(CONNECT_TIMEOUT_MS);
    this.#stream = deps.transport.open(endpoint, {
      onFrame: (response) => this.#onFrame(response.frame),
      onEnd: (error) => this.#end(endOfStatus(error, this.#phase !== "connecting")),
    });
  }

  /** The intervals in force. */
  get pace(): Pace {
    return this.#pace;
  }

  /** Have the agent move to a new stream as if the server had asked for it, but to no other replica. */
  askRenewal(message: string): void {
    this.#settleMoveAsked(create(GoAwaySchema, { message }));
  }

  /** Leave without a word: another stream has taken over, or nobody listens any more. */
  drop(): void {
    this.#end({ kind: "left" });
  }

  /** Say goodbye, and wait until the server has taken it, at most `limitMs`. */
  async goodbye(reason: string, limitMs: number): Promise<void> {
    if (this.#phase !== "open") return this.drop();
    this.#phase = "leaving";
    this.#stopWork();
    this.#send({ case: "goodbye", value: { reason: reason.slice(0, 1024) } });
    this.#stream.finish();
    const limit = new Alarm(this.#deps.clock, () => this.drop());
    limit.set(limitMs);
    await this.ended;
    limit.clear();
  }

  #onFrame(frame: HeartbeatResponse["frame"]): void {
    if (this.#phase === "ended") return;
    switch (frame.case) {
      case "challenge":
        if (this.#phase === "connecting") void this.#greet(frame.value);
        break;
      case "welcome":
        if (this.#phase === "greeting") this.#onWelcome(frame.value);
        break;
      case "ack":
        this.#onAck(frame.value.sequence, frame.value.nextIntervalMs);
        break;
      case "settings":
        this.#settingsGeneration = frame.value.generation;
        this.#keepPace(paceAfter(this.#pace, frame.value));
        this.#deps.events.onSettings(frame.value);
        break;
      case "membership":
        this.#deps.events.onMembership(frame.value);
        break;
      case "goAway":
        this.#onGoAway(frame.value);
        break;
      case undefined:
        // A frame of a newer server.
        break;
    }
  }

  async #greet(challenge: Parameters<typeof makeHello>[2]): Promise<void> {
    this.#phase = "greeting";
    this.#patienceAlarm.set(WELCOME_TIMEOUT_MS);
    this.#deps.usage.measure();
    const digest = await digestInTime(this.#deps.info, this.#deps.clock);
    this.#reports.seen(digest);
    this.#send({
      case: "hello",
      value: {
        ...makeHello(this.#deps.identity, this.keyPair, challenge, digest),
        agentTimeMs: this.#time.next(),
      },
    });
  }

  #onWelcome(welcome: Welcome): void {
    this.#phase = "open";
    this.#patienceAlarm.clear();
    this.#lastAckAtMs = this.#deps.clock.nowMs();
    this.#pace = paceAfter(this.#pace, welcome.settings);
    this.#settingsGeneration = welcome.settings?.generation ?? 0;
    if (welcome.settings !== undefined) this.#deps.events.onSettings(welcome.settings);
    this.#settleOpened({ ok: true, welcome });
    this.#beat();
    this.#reports.begin(this.#pace.infoMs, welcome.nodeInfoWanted);
  }

  #onAck(sequence: number, nextIntervalMs: number): void {
    if (this.#phase !== "open") return;
    this.#lastAckAtMs = this.#deps.clock.nowMs();
    this.#unansweredSinceMs = sequence >= this.#sequence ? undefined : this.#lastBeatAtMs;
    this.#keepPace(paceAfterAck(this.#pace, nextIntervalMs));
    this.#watchSilence();
    this.#deps.events.onAck();
  }

  #onGoAway(goAway: GoAway): void {
    if (goAway.action === GoAwayAction.MOVE && this.#phase === "open") {
      this.#settleMoveAsked(goAway);
    } else {
      this.#end(endOfGoAway(goAway));
    }
  }

  #beat(): void {
    const { clock, usage } = this.#deps;
    this.#sequence += 1;
    this.#lastBeatAtMs = clock.nowMs();
    this.#unansweredSinceMs ??= this.#lastBeatAtMs;
    const { usage: message, sent } = toResourceUsage(usage.latest(this.#pace.heartbeatMs), this.#sent);
    this.#sent = sent;
    const settingsGeneration = this.#newGeneration();
    const agentTimeMs = this.#time.next();
    this.#send({
      case: "beat",
      value: { sequence: this.#sequence, usage: message, settingsGeneration, agentTimeMs },
    });
    this.#scheduleBeat();
    this.#watchSilence();
  }

  /** The settings that are kept to, when the server does not know yet; else 0, which is not sent. */
  #newGeneration(): number {
    if (this.#settingsGeneration === this.#toldGeneration) return 0;
    this.#toldGeneration = this.#settingsGeneration;
    return this.#settingsGeneration;
  }

  #scheduleBeat(): void {
    const sinceMs = this.#deps.clock.nowMs() - this.#lastBeatAtMs;
    const inMs = Math.max(0, this.#pace.heartbeatMs - sinceMs);
    this.#beatAlarm.set(inMs);
    // Measuring shortly before the beat makes what is sent fresh without making the beat wait for it.
    this.#measureAlarm.set(inMs - Math.min(MEASURE_LEAD_MS, inMs / 2));
  }

  #keepPace(pace: Pace): void {
    const { heartbeatMs, infoMs } = this.#pace;
    this.#pace = pace;
    if (this.#phase !== "open") return;
    if (pace.heartbeatMs !== heartbeatMs) this.#scheduleBeat();
    if (pace.infoMs !== infoMs) this.#reports.setInterval(pace.infoMs);
  }

  #watchSilence(): void {
    if (this.#unansweredSinceMs === undefined) {
      this.#patienceAlarm.clear();
    } else {
      const atMs = silentAtMs(this.#pace, this.#lastAckAtMs, this.#unansweredSinceMs);
      this.#patienceAlarm.set(atMs - this.#deps.clock.nowMs());
    }
  }

  #loseHope(): void {
    this.#end(
      this.#phase === "connecting"
        ? { kind: "unreachable", message: `no answer within ${CONNECT_TIMEOUT_MS} ms` }
        : { kind: "silent" },
    );
  }

  #send(frame: FrameInit): void {
    if (this.#phase !== "ended") this.#stream.send(requestFrame(frame));
  }

  #stopWork(): void {
    this.#beatAlarm.clear();
    this.#measureAlarm.clear();
    this.#patienceAlarm.clear();
    this.#reports.end();
  }

  #end(end: SessionEnd): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#stopWork();
    this.#stream.cancel();
    this.#settleOpened({ ok: false, end });
    this.#settleEnded(end);
  }
}

const MEASURE_LEAD_MS = 1_000;
