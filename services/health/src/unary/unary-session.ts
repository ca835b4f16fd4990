import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Farewell } from "../replica/farewell.ts";
import type { HeldNode } from "../replica/held-node.ts";
import { AgentSession } from "../session/agent-session.ts";
import type { AgentLink, SessionEnd, SessionHost } from "../session/session-host.ts";

/** The method name in a unary Hello's proof. */
export const REPORT_METHOD = "/rollcall.health.v1.HealthQueryService/ReportHeartbeat";

/** A session that was opened by a call. */
export interface UnarySession {
  readonly node: HeldNode;
  readonly session: AgentSession;
}

/**
 * Open a session by calls. Resolves with the farewell when it is not opened; rejects when the Hello breaks the
 * contract's rules.
 *
 * @param onEnd called when an open session ends, so that the agent's next call returns the reason.
 */
export async function openUnarySession(
  hello: { readonly hello: Hello; readonly nonce: Uint8Array; readonly peer: string },
  host: SessionHost,
  onEnd: (end: SessionEnd, node: HeldNode) => void,
): Promise<UnarySession | Farewell> {
  const { nonce, peer } = hello;
  const link = new CallLink(peer, onEnd);
  const session = new AgentSession(link, host, { firstSequence: 1, nonce, helloWithinMs: null });
  session.receive({ kind: "hello", hello: hello.hello });
  const opened = await link.opened;
  return "reason" in opened ? opened : { node: opened, session };
}

/** The responses of calls: what is sent to the agent waits for the next one, which carries the value of that moment. */
class CallLink implements AgentLink {
  readonly peer: string;
  readonly proofMethod = REPORT_METHOD;
  readonly takesOldBeats = false;
  readonly carriesWork = false;
  readonly isBehind = false;
  readonly isTooSlow = false;
  /** The node, once the session is open; the farewell otherwise. */
  readonly opened: Promise<HeldNode | Farewell>;
  readonly #onEnd: (end: SessionEnd, node: HeldNode) => void;
  #resolve: (opened: HeldNode | Farewell) => void = () => {};

  constructor(peer: string, onEnd: (end: SessionEnd, node: HeldNode) => void) {
    this.peer = peer;
    this.#onEnd = onEnd;
    this.opened = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  sendWelcome(node: HeldNode): void {
    this.#resolve(node);
  }

  sendAck(): void {}

  sendMembership(): void {}

  sendSettings(): void {}

  sendWork(): void {}

  /** An agent that calls says in no Hello that it takes them. */
  sendAuthorities(): void {}

  /** The agent may call any replica. */
  sendMove(): boolean {
    return false;
  }

  ended(end: SessionEnd, node: HeldNode | null): void {
    if (end.kind === "left") this.#resolve(end.farewell);
    if (node !== null) this.#onEnd(end, node);
  }
}
