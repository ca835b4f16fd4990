import { type GoAway, GoAwayAction, type Settings, type Welcome } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Membership } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { AgentKeys, MembershipState } from "@rollcall/domain";
import type { NodeKeyPair } from "@rollcall/identity";
import { membershipStateFromProto } from "@rollcall/wire";
import type { AgentPhase, AgentStatus } from "../agent-status.ts";
import { Alarm } from "../alarm.ts";
import type { AgentTrust } from "../network/agent-trust.ts";
import { Enrolment, type EnrolmentOptions } from "../registration/enrolment.ts";
import { HeartbeatSession, type SessionServices } from "../stream/heartbeat-session.ts";
import { toMs } from "../stream/hello.ts";
import { isCastOut, type SessionEnd } from "../stream/session-end.ts";
import type { SessionNews } from "../stream/session-state.ts";
import { stepAgent } from "./agent-machine.ts";
import { type AgentEffect, type AgentEvent, type AgentState, beginAgent, dueAtMs } from "./agent-state.ts";
import { ConnectionLog } from "./connection-log.ts";

export interface StayConnectedOptions extends EnrolmentOptions, SessionServices {
  readonly trust?: Pick<AgentTrust, "digest" | "hear" | "isReady">;
  /** Returns numbers in [0, 1), for jitter. */
  readonly random: () => number;
  /** Called with the server's settings whenever they arrive. */
  readonly onSettings?: (settings: Settings) => void;
  /** Called for each session that a server has welcomed. */
  readonly onConnected?: () => void;
  /** Called when the server has accepted a proof with the next key, which is now the node's key. */
  readonly onKeyUsed?: () => void;
}

/**
 * A registration or an opening in progress. It ends with one event for stepAgent(), or with none after `give-up`.
 */
type Begun =
  | { readonly kind: "registration"; readonly stop: AbortController }
  | { readonly kind: "stream"; readonly session: HeartbeatSession; readonly welcome: Welcome | null };

/**
 * Period of a timer that keeps an idle process alive. If the process exited, a service manager would restart it,
 * and it would register as a new node.
 */
const IDLE_TICK_MS = 86_400_000;

/** Registers the node if needed, and keeps one stream open. It carries out the decisions of stepAgent(). */
export class StayConnected {
  readonly #options: StayConnectedOptions;
  readonly #enrolment: Enrolment;
  readonly #log: ConnectionLog;
  readonly #alarm: Alarm;
  readonly #closed = new AbortController();
  #state: AgentState;
  /** The stream that holds the session. */
  #held: HeartbeatSession | null = null;
  #begun: Begun | null = null;
  /** Whether the node's description has changed since it was sent on the stream that is being opened. */
  #hasNews = false;
  /** The callback that run() was given. */
  #succeeded: () => void = () => {};

  constructor(options: StayConnectedOptions) {
    this.#options = options;
    this.#enrolment = new Enrolment(options);
    this.#log = new ConnectionLog(options.log, () => options.clock.wallMs());
    this.#alarm = new Alarm(options.clock, () => this.#dispatch({ kind: "due" }));
    this.#state = beginAgent(options.random());
  }

  status(): Omit<AgentStatus, "ungrantedWishes"> {
    const { stage, held, membership } = this.#state;
    return {
      phase: PHASES[stage.kind],
      nodeId: this.#options.identity.nodeId,
      endpoint: held?.endpoint,
      sessionEpoch: held?.epoch,
      membership,
    };
  }

  /**
   * Open a new stream with the next key, and leave the current stream only after that. If no stream is open, the
   * next attempt uses the new key anyway. A stream that is being opened with the old key is replaced once it is
   * open.
   */
  renew(): void {
    this.#dispatch({ kind: "move-asked", isOwnWish: true, retryAfterMs: 0, endpoints: [] });
  }

  /** Send the changed description of the node to the server soon. */
  look(): void {
    this.#hasNews = true;
    this.#held?.look();
  }

  /** Run until the signal aborts or the agent is closed. An abort sends no goodbye. */
  async run(signal: AbortSignal, succeeded: () => void = () => {}): Promise<void> {
    this.#succeeded = succeeded;
    const abort = (): void => this.#dispatch({ kind: "abort" });
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    // Take the first measurement, because CPU usage is calculated from two.
    this.#options.usage.measure();
    // Read the machine now, so that its description is ready when a server sends a Challenge.
    void this.#options.info.current();
    await this.#enrolment.load();
    const { sentinel } = this.#enrolment;
    const endpoints = sentinel?.healthEndpoints ?? [];
    // Without the authority, no stream can be opened. Registration fetches it, so register again even if the sentinel
    // says that this node is registered.
    const isRegistered = sentinel !== undefined && (this.#options.trust?.isReady ?? true);
    this.#dispatch({ kind: "loaded", isRegistered, endpoints });
    await this.#ended();
    signal.removeEventListener("abort", abort);
  }

  /** Send a goodbye and stop permanently. */
  async close(reason: string): Promise<void> {
    this.#dispatch({ kind: "close", reason });
    await this.#ended();
  }

  async #ended(): Promise<void> {
    const { signal } = this.#closed;
    if (signal.aborted) return;
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }

  #dispatch(event: AgentEvent): void {
    const { clock, random } = this.#options;
    const { state, effects } = stepAgent(this.#state, event, { nowMs: clock.nowMs(), random01: random() });
    this.#state = state;
    for (const effect of effects) this.#carryOut(effect);
    this.#setAlarm();
  }

  #setAlarm(): void {
    const state = this.#state;
    if (state.stage.kind === "closed") {
      this.#alarm.clear();
      this.#closed.abort();
    } else if (state.stage.kind === "idle") {
      this.#alarm.setAt(this.#options.clock.nowMs() + IDLE_TICK_MS);
    } else {
      const atMs = dueAtMs(state);
      if (atMs === null) this.#alarm.clear();
      else this.#alarm.setAt(atMs);
    }
  }

  #carryOut(effect: AgentEffect): void {
    switch (effect.kind) {
      case "register":
        void this.#register();
        return;
      case "open": {
        const { pace } = this.#held ?? this.#state;
        const onNews = (session: HeartbeatSession, news: SessionNews): void => this.#onNews(session, news);
        const session = new HeartbeatSession(this.#options, { endpoint: effect.endpoint, pace, onNews });
        this.#begun = { kind: "stream", session, welcome: null };
        this.#hasNews = false;
        return;
      }
      case "hold":
        this.#hold();
        return;
      case "drop":
        this.#drop();
        return;
      case "give-up":
        this.#giveUp();
        return;
      case "goodbye":
        this.#held?.goodbye(effect.reason, effect.limitMs);
        return;
      case "forget":
        void this.#enrolment.forget();
        return;
      case "log-end":
        this.#log.ended(effect.end, effect.next);
        return;
    }
  }

  async #register(): Promise<void> {
    const { phase } = this.#options.identity.keys;
    const stop = new AbortController();
    this.#begun = { kind: "registration", stop };
    const outcome = await this.#enrolment.register(stop.signal);
    this.#noteKey(phase);
    if (stop.signal.aborted) return;
    this.#begun = null;
    if (outcome.ok) {
      const { membership, endpoints } = outcome;
      this.#dispatch({ kind: "registered", membership, endpoints });
    } else {
      const { end } = outcome;
      if (isCastOut(end) && end.castOutBy !== undefined) this.#options.work?.castOut(end.castOutBy);
      this.#dispatch({ kind: "not-registered", end });
    }
  }

  #onNews(session: HeartbeatSession, news: SessionNews): void {
    if (this.#begun?.kind === "stream" && session === this.#begun.session) this.#onBegun(session, news);
    else if (session === this.#held) this.#onHeld(session, news);
  }

  #onBegun(session: HeartbeatSession, news: SessionNews): void {
    if (news.kind === "opened") {
      const { welcome } = news;
      this.#begun = { kind: "stream", session, welcome };
      const endpoints = this.#options.registrar.resolve(welcome.healthEndpoints);
      const membership = stateOf(welcome.membership);
      const hasNewerKey = session.keyPair !== this.#options.identity.keys.toUse();
      this.#dispatch({ kind: "opened", epoch: welcome.sessionEpoch, membership, endpoints, hasNewerKey });
    } else if (news.kind === "ended") {
      this.#begun = null;
      const { end } = news;
      const { keys } = this.#options.identity;
      this.#dispatch({ kind: "not-opened", end, hasOtherKey: isKeyRefused(end) && keys.refused(session.keyPair) });
    } else {
      this.#note(news);
    }
  }

  #onHeld(session: HeartbeatSession, news: SessionNews): void {
    if (news.kind === "ended") {
      this.#held = null;
      this.#dispatch({ kind: "session-ended", end: news.end, pace: session.pace });
    } else if (news.kind !== "opened") {
      this.#note(news);
    }
  }

  #note(news: Exclude<SessionNews, { readonly kind: "opened" | "ended" }>): void {
    switch (news.kind) {
      // Do nothing, because the session handles these itself.
      case "authorities":
      case "executions":
      case "spec":
      case "report-acked":
        return;
      case "acked":
        this.#dispatch({ kind: "acked" });
        return;
      case "settings":
        this.#options.onSettings?.(news.settings);
        return;
      case "membership":
        this.#onMembership(news.membership);
        return;
      case "move-asked":
        this.#onMoveAsked(news.goAway);
        return;
    }
  }

  #hold(): void {
    if (this.#begun?.kind !== "stream" || this.#begun.welcome === null) return;
    const { session, welcome } = this.#begun;
    this.#begun = null;
    this.#drop();
    this.#held = session;
    if (this.#hasNews) session.look();
    this.#succeeded();
    const { endpoints, membership } = this.#state;
    this.#log.connected(session.endpoint, welcome, membership);
    this.#options.onConnected?.();
    void this.#accepted(session.keyPair, welcome.clusterId, endpoints);
  }

  /**
   * Called when the server has accepted a proof with this key. Failures to write the files are logged where they
   * happen, and do not stop the agent.
   */
  async #accepted(keyPair: NodeKeyPair, clusterId: string, endpoints: readonly string[]): Promise<void> {
    const { keys } = this.#options.identity;
    const { phase } = keys;
    await keys.accepted(keyPair);
    this.#noteKey(phase);
    await this.#enrolment.remember(clusterId, endpoints);
  }

  /** Cancel the registration or opening in progress, and ignore its result. */
  #giveUp(): void {
    const begun = this.#begun;
    this.#begun = null;
    if (begun?.kind === "registration") begun.stop.abort();
    else begun?.session.drop();
  }

  /** Drop the stream that holds the session, and ignore its end. */
  #drop(): void {
    const session = this.#held;
    this.#held = null;
    session?.drop();
  }

  #onMembership(membership: Membership): void {
    this.#dispatch({ kind: "membership", membership: stateOf(membership) });
    const { reason, message } = membership;
    this.#options.log.info({ membership: this.#state.membership, reason, detail: message }, "membership changed");
  }

  #onMoveAsked({ action, message, retryAfter, endpoints }: GoAway): void {
    if (action === GoAwayAction.MOVE) this.#log.moving(message);
    this.#dispatch({
      kind: "move-asked",
      isOwnWish: false,
      retryAfterMs: retryAfter ? toMs(retryAfter) : 0,
      endpoints: this.#options.registrar.resolve(endpoints),
    });
  }

  /** @param before the phase before the proof was sent. */
  #noteKey(before: AgentKeys["phase"]): void {
    const { phase } = this.#options.identity.keys;
    if (before !== "settled" && phase === "settled") this.#options.onKeyUsed?.();
  }
}

const PHASES: Readonly<Record<AgentState["stage"]["kind"], AgentPhase>> = {
  starting: "starting",
  registering: "registering",
  opening: "connecting",
  connected: "connected",
  waiting: "waiting",
  idle: "idle",
  closing: "connected",
  closed: "closed",
};

/** Whether the server refused the stream's key. */
function isKeyRefused(end: SessionEnd): boolean {
  return end.kind === "refused" && end.reason === "PROOF_INVALID";
}

/** Convert the state of a membership; undefined if this agent does not know the state. */
function stateOf(membership: Membership | undefined): MembershipState | undefined {
  return membership && membershipStateFromProto(membership.state);
}
