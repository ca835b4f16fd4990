import type { Welcome } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeKeyPair } from "@rollcall/identity";
import { HeartbeatSession, type SessionDeps } from "./heartbeat-session.ts";
import type { Pace } from "./pace.ts";
import type { SessionEnd } from "./session-end.ts";

/** A session that a server has welcomed. */
export interface OpenSession {
  readonly session: HeartbeatSession;
  readonly endpoint: string;
  readonly welcome: Welcome;
}

/** How an attempt to open a session went. */
export type ConnectOutcome =
  | { readonly ok: true; readonly opened: OpenSession }
  | {
      readonly ok: false;
      readonly end: SessionEnd;
      /** The key with which the last attempt was made; absent when there was none. */
      readonly keyPair?: NodeKeyPair;
    };

const NO_REPLICA: SessionEnd = { kind: "unreachable", message: "no health replica is known" };

/** Opens sessions on the health endpoints in turn. */
export class Connector {
  readonly #deps: SessionDeps;
  #turn: number;

  /** `random01` decides where the first turn begins, so that agents spread over the replicas. */
  constructor(deps: SessionDeps, random01: number) {
    this.#deps = deps;
    this.#turn = Math.floor(random01 * 1024);
  }

  /**
   * Try each endpoint once, until one is reached. A server that refuses has been reached: its word counts, and the
   * next attempt begins with the next endpoint.
   */
  async open(endpoints: readonly string[], pace: Pace, signal: AbortSignal): Promise<ConnectOutcome> {
    let outcome: ConnectOutcome = { ok: false, end: NO_REPLICA };
    for (const endpoint of this.#inTurn(endpoints)) {
      if (signal.aborted) return { ok: false, end: { kind: "left" } };
      const session = new HeartbeatSession(this.#deps, endpoint, pace);
      const drop = (): void => session.drop();
      signal.addEventListener("abort", drop, { once: true });
      const opening = await session.opened;
      signal.removeEventListener("abort", drop);
      if (opening.ok) return { ok: true, opened: { session, endpoint, welcome: opening.welcome } };
      this.turn();
      outcome = { ok: false, end: opening.end, keyPair: session.keyPair };
      if (opening.end.kind !== "unreachable") break;
    }
    return outcome;
  }

  /** Begin the next attempt with another endpoint: the one that was held last has ended its stream. */
  turn(): void {
    this.#turn += 1;
  }

  #inTurn(endpoints: readonly string[]): readonly string[] {
    const first = endpoints.length === 0 ? 0 : this.#turn % endpoints.length;
    return [...endpoints.slice(first), ...endpoints.slice(0, first)];
  }
}
