import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Farewell } from "../replica/farewell.ts";
import type { LiveNode } from "../replica/live-node.ts";
import { AgentSession } from "../session/agent-session.ts";
import type { AgentLink, SessionEnd, SessionHost } from "../session/session-host.ts";

/** The method name in a unary Hello's proof. */
export const REPORT_METHOD = "/rollcall.health.v1.HealthQueryService/ReportHeartbeat";

/** A session that was opened by a call. */
export interface UnarySession {
  readonly node: LiveNode;
  readonly session: AgentSession;
}

/**
 * Open a unary session. Resolves with the farewell if the session is refused; rejects when the Hello breaks the
 * contract's rules.
 *
 * @param onEnd called when an open session ends, so that the agent's next call can return the reason.
 */
export async function openUnarySession(
  hello: { readonly hello: Hello; readonly nonce: Uint8Array; readonly peer: string },
  host: SessionHost,
  onEnd: (end: SessionEnd, node: LiveNode) => void,
): Promise<UnarySession | Farewell> {
  const { nonce, peer } = hello;
  const link = new CallLink(peer, onEnd);
  const session = new AgentSession(link, host, { firstSequence: 1, nonce, helloWithinMs: null });
  session.receive({ kind: "hello", hello: hello.hello });
  const opened = await link.opened;
  return "reason" in opened ? opened : { node: opened, session };
}

/**
 * The transport of a unary session. It sends nothing, because the response to the agent's next call carries the
 * current values.
 */
class CallLink implements AgentLink {
  readonly peer: string;
  readonly proofMethod = REPORT_METHOD;
  readonly takesOldBeats = false;
  readonly carriesWork = false;
  readonly isBehind = false;
  readonly isTooSlow = false;
  /** Resolves with the node once the session is open, or else with the farewell. */
  readonly opened: Promise<LiveNode | Farewell>;
  readonly #onEnd: (end: SessionEnd, node: LiveNode) => void;
  #resolve: (opened: LiveNode | Farewell) => void = () => {};

  constructor(peer: string, onEnd: (end: SessionEnd, node: LiveNode) => void) {
    this.peer = peer;
    this.#onEnd = onEnd;
    this.opened = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  sendWelcome(node: LiveNode): void {
    this.#resolve(node);
  }

  sendAck(): void {}

  sendMembership(): void {}

  sendSettings(): void {}

  sendWork(): void {}

  /** Agents with unary calls do not accept authorities. */
  sendAuthorities(): void {}

  /** A move is not needed, because the agent can call any replica. */
  sendMove(): boolean {
    return false;
  }

  ended(end: SessionEnd, node: LiveNode | null): void {
    if (end.kind === "left") this.#resolve(end.farewell);
    if (node !== null) this.#onEnd(end, node);
  }
}
