import { type GoAway, GoAwayAction, type Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Membership } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type AgentKeys, fullJitter, type MembershipState } from "@rollcall/domain";
import type { AgentPhase, AgentStatus } from "../agent-status.ts";
import { decideNextStep, isDecision, isRejection, type NextStep } from "../next-step.ts";
import { Enrolment, type EnrolmentDeps } from "../registration/enrolment.ts";
import { type ConnectOutcome, Connector, type OpenSession } from "../stream/connector.ts";
import type { SessionDeps } from "../stream/heartbeat-session.ts";
import { toMs } from "../stream/hello.ts";
import { DEFAULT_PACE, type Pace, silenceLimitMs } from "../stream/pace.ts";
import type { SessionEnd } from "../stream/session-end.ts";
import { ConnectionLog } from "./connection-log.ts";
import { endOfMove, isKeyRefused, placesToMoveTo, stateOf } from "./session-outcome.ts";

/** What keeps an agent connected. */
export interface StayConnectedDeps extends EnrolmentDeps, Omit<SessionDeps, "events"> {
  /** Numbers from 0 to less than 1, for jitter. */
  readonly random: () => number;
  /** Told what the server's settings are, whenever they come. */
  readonly onSettings?: (settings: Settings) => void;
  /** Told that the next key was taken in a proof, and is the node's key. */
  readonly onKeyUsed?: () => void;
}

/** How long a goodbye may take to be delivered. */
const GOODBYE_LIMIT_MS = 5_000;

const IDLE_TURN_MS = 86_400_000;

/** A move without a time of its own begins within this, so that the agents of one replica do not move at once. */
const MOVE_JITTER_MS = 1_000;

/** Registers the node when that is needed, and keeps one stream open for as long as the agent lives. */
export class StayConnected {
  readonly #deps: StayConnectedDeps;
  readonly #enrolment: Enrolment;
  readonly #connector: Connector;
  readonly #log: ConnectionLog;
  /** Aborts when the agent closes: nothing new is begun, while the open stream says goodbye. */
  readonly #closing = new AbortController();
  #phase: AgentPhase = "starting";
  #current: OpenSession | undefined;
  #membership: MembershipState | undefined;
  #pace: Pace = DEFAULT_PACE;
  #failures = 0;
  #unreachable = 0;
  /** When the node was first told that it is rejected, unless it was taken in since. */
  #rejectedAtMs: number | undefined;
  #mustRegister = false;

  constructor(deps: StayConnectedDeps) {
    this.#deps = deps;
    this.#enrolment = new Enrolment(deps);
    this.#log = new ConnectionLog(deps.log, () => deps.clock.wallMs());
    const events = {
      onMembership: (membership: Membership) => this.#onMembership(membership),
      onSettings: (settings: Settings) => deps.onSettings?.(settings),
      onAck: () => {
        this.#failures = 0;
        this.#rejectedAtMs = undefined;
      },
    };
    this.#connector = new Connector({ ...deps, events }, deps.random());
  }

  status(): Omit<AgentStatus, "ungrantedWishes"> {
    return {
      phase: this.#phase,
      nodeId: this.#deps.identity.nodeId,
      endpoint: this.#current?.endpoint,
      sessionEpoch: this.#current?.welcome.sessionEpoch,
      membership: this.#membership,
    };
  }

  /** Open a new stream, and leave the present one only then. Without one the next attempt is new anyway. */
  renew(reason: string): void {
    this.#current?.session.askRenewal(reason);
  }

  /** Work until the signal aborts or the agent is closed. An abort leaves without a goodbye. */
  async run(signal: AbortSignal, succeeded: () => void = () => {}): Promise<void> {
    const ending = AbortSignal.any([signal, this.#closing.signal]);
    const dropCurrent = (): void => this.#current?.session.drop();
    signal.addEventListener("abort", dropCurrent, { once: true });
    try {
      // The first of two measurements between which the CPU's share is taken.
      this.#deps.usage.measure();
      // Begun here so that it is done by the time that a server asks who is there.
      void this.#deps.info.current();
      await this.#enrolment.load();
      this.#mustRegister = this.#enrolment.sentinel === undefined;
      await this.#connectUntil(ending, succeeded);
    } finally {
      signal.removeEventListener("abort", dropCurrent);
      dropCurrent();
      this.#current = undefined;
      this.#phase = "closed";
    }
  }

  /** Say goodbye and end for good. */
  async close(reason: string): Promise<void> {
    this.#closing.abort(new Error(reason));
    await this.#current?.session.goodbye(reason, GOODBYE_LIMIT_MS);
    this.#phase = "closed";
  }

  async #connectUntil(ending: AbortSignal, succeeded: () => void): Promise<void> {
    let tryRegister = false;
    while (!ending.aborted) {
      const end = await this.#attempt(tryRegister, ending, succeeded);
      if (ending.aborted) return;
      const step = this.#decide(end);
      this.#log.ended(end, step);
      if (step.kind === "idle") return this.#stayIdle(ending);
      tryRegister = step.register === "try";
      this.#mustRegister ||= step.register === "must";
      this.#phase = "waiting";
      await this.#wait(step.delayMs, ending);
    }
  }

  /** Register if that is due, open a stream, and hold it; answer how it ended. */
  async #attempt(tryRegister: boolean, ending: AbortSignal, succeeded: () => void): Promise<SessionEnd> {
    if (this.#mustRegister || tryRegister) {
      this.#phase = "registering";
      const { phase } = this.#deps.identity.keys;
      const outcome = await this.#enrolment.register(ending);
      this.#noteKey(phase);
      if (outcome.ok) {
        this.#membership = outcome.membership;
        this.#mustRegister = false;
        this.#unreachable = 0;
      } else if (this.#mustRegister || outcome.end.kind !== "unreachable") {
        return outcome.end;
      }
    }
    this.#phase = "connecting";
    const outcome = await this.#open(this.#endpoints(), this.#pace, ending);
    if (outcome.ok) {
      this.#unreachable = 0;
      succeeded();
      return this.#hold(outcome.opened, ending);
    }
    this.#unreachable = outcome.end.kind === "unreachable" ? this.#unreachable + 1 : 0;
    return outcome.end;
  }

  /**
   * Open a stream. When the server refuses the key and the node has another one, which a rotation may have made its
   * key, with that.
   */
  async #open(endpoints: readonly string[], pace: Pace, ending: AbortSignal): Promise<ConnectOutcome> {
    const { keys } = this.#deps.identity;
    const { phase } = keys;
    let outcome = await this.#connector.open(endpoints, pace, ending);
    if (!outcome.ok && isKeyRefused(outcome.end) && outcome.keyPair !== undefined) {
      const hasOther = keys.refused(outcome.keyPair);
      if (hasOther) outcome = await this.#connector.open(endpoints, pace, ending);
    }
    if (outcome.ok) {
      await keys.accepted(outcome.opened.session.keyPair);
      this.#noteKey(phase);
    }
    return outcome;
  }

  /** @param before the phase before a proof was tried. */
  #noteKey(before: AgentKeys["phase"]): void {
    const { phase } = this.#deps.identity.keys;
    if (before !== "settled" && phase === "settled") this.#deps.onKeyUsed?.();
  }

  /** Stay with an open session, and with those that it asks to move to, until one ends. */
  async #hold(first: OpenSession, ending: AbortSignal): Promise<SessionEnd> {
    let held = first;
    for (;;) {
      // Closing saw no session to say goodbye on, so nobody else will end this one.
      if (ending.aborted) held.session.drop();
      this.#adopt(held);
      const { session } = held;
      const next = await Promise.race([session.ended, session.moveAsked]);
      if ("kind" in next) {
        this.#connector.turn();
        this.#pace = session.pace;
        this.#current = undefined;
        return next;
      }
      const moved = await this.#move(held, next, ending);
      if (!moved.ok) {
        this.#current = undefined;
        return moved.end;
      }
      held = moved.opened;
    }
  }

  /** Open a stream elsewhere while the present one goes on, and leave the present one only then. */
  async #move(held: OpenSession, goAway: GoAway, ending: AbortSignal): Promise<ConnectOutcome> {
    const isOwnWish = goAway.action !== GoAwayAction.MOVE;
    if (!isOwnWish) this.#log.moving(goAway.message);
    const { session, endpoint } = held;
    let delayMs = this.#moveDelayMs(goAway);
    for (let attempts = 0; ; attempts += 1) {
      const over = await Promise.race([session.ended, this.#wait(delayMs, ending)]);
      if (over !== undefined) return { ok: false, end: attempts > 0 ? endOfMove(over) : over };
      // When the agent closes, the present stream is the one that says goodbye.
      if (ending.aborted) return { ok: false, end: await session.ended };
      const named = attempts === 0 ? this.#deps.registrar.resolve(goAway.endpoints) : [];
      const outcome = await this.#open(
        isOwnWish ? [endpoint] : placesToMoveTo(endpoint, named, this.#endpoints()),
        session.pace,
        ending,
      );
      if (outcome.ok) {
        session.drop();
        return outcome;
      }
      const step = this.#decide(outcome.end);
      if (step.kind === "idle" || step.register === "must" || isDecision(outcome.end)) {
        session.drop();
        return outcome;
      }
      delayMs = step.delayMs;
    }
  }

  #adopt(opened: OpenSession): void {
    const { welcome } = opened;
    this.#current = opened;
    this.#phase = "connected";
    this.#membership = stateOf(welcome.membership) ?? this.#membership;
    this.#log.connected(opened, this.#membership);
    const endpoints = this.#deps.registrar.resolve(welcome.healthEndpoints);
    const { clusterId } = welcome;
    // Nobody waits for the file: a failure to write it is logged there.
    void this.#enrolment.remember(clusterId, endpoints.length > 0 ? endpoints : this.#endpoints());
  }

  #onMembership(membership: Membership): void {
    this.#membership = stateOf(membership) ?? this.#membership;
    const { reason, message } = membership;
    this.#deps.log.info({ membership: this.#membership, reason, detail: message }, "membership changed");
  }

  #decide(end: SessionEnd): NextStep {
    const nowMs = this.#deps.clock.nowMs();
    if (isRejection(end)) this.#rejectedAtMs ??= nowMs;
    const step = decideNextStep(end, {
      failures: this.#failures,
      unreachable: this.#unreachable,
      rejectedForMs: nowMs - (this.#rejectedAtMs ?? nowMs),
      backoffMaxMs: silenceLimitMs(this.#pace),
      random01: this.#deps.random(),
    });
    this.#failures += 1;
    return step;
  }

  async #stayIdle(ending: AbortSignal): Promise<void> {
    this.#phase = "idle";
    await this.#enrolment.forget();
    // Without a timer nothing would keep the process alive, and whoever started it would start it again: as a new node.
    while (!ending.aborted) await this.#wait(IDLE_TURN_MS, ending);
  }

  #endpoints(): readonly string[] {
    return this.#enrolment.sentinel?.healthEndpoints ?? [];
  }

  #moveDelayMs({ retryAfter }: GoAway): number {
    const jitterMs = fullJitter({
      attempt: 0,
      baseMs: MOVE_JITTER_MS,
      maxMs: MOVE_JITTER_MS,
      random01: this.#deps.random(),
    });
    return (retryAfter ? toMs(retryAfter) : 0) + jitterMs;
  }

  /** Resolves after the time, or as soon as the signal aborts. */
  async #wait(ms: number, signal: AbortSignal): Promise<undefined> {
    // Rejects with the abort alone, which the callers look at next.
    await this.#deps.clock.sleep(ms, signal).catch(() => {});
    return undefined;
  }
}
