import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { HeldNode } from "../replica/held-node.ts";
import { AgentSession } from "../session/agent-session.ts";
import { errorOf } from "../session/farewell-error.ts";
import type { AgentLink, SessionEnd, SessionHost } from "../session/session-host.ts";

/** The method name in a unary Hello's proof. */
export const REPORT_METHOD = "/rollcall.health.v1.HealthQueryService/ReportHeartbeat";

/** A session that was opened by a call. */
export interface UnarySession {
  readonly node: HeldNode;
  readonly session: AgentSession;
}

/**
 * Open a session by calls. Rejects with the reason when it is not opened.
 *
 * @param onEnd called when an open session ends, so that the agent's next call returns the reason.
 */
export async function openUnarySession(
  hello: { readonly hello: Hello; readonly nonce: Uint8Array; readonly peer: string },
  host: SessionHost,
  onEnd: (end: SessionEnd, node: HeldNode) => void,
): Promise<UnarySession> {
  const { nonce, peer } = hello;
  const link = new CallLink(peer, onEnd);
  const session = new AgentSession(link, host, { firstSequence: 1, nonce, helloWithinMs: null });
  // It may reject before anything awaits it.
  link.opened.catch(() => {});
  session.receive({ kind: "hello", hello: hello.hello });
  return { node: await link.opened, session };
}

/** The responses of calls: what is sent to the agent waits for the next one, which carries the value of that moment. */
class CallLink implements AgentLink {
  readonly peer: string;
  readonly proofMethod = REPORT_METHOD;
  readonly takesOldBeats = false;
  readonly carriesWork = false;
  readonly isBehind = false;
  readonly isTooSlow = false;
  /** The node, once the session is open; rejects with the reason otherwise. */
  readonly opened: Promise<HeldNode>;
  readonly #onEnd: (end: SessionEnd, node: HeldNode) => void;
  #resolve: (node: HeldNode) => void = () => {};
  #reject: (why: Error) => void = () => {};

  constructor(peer: string, onEnd: (end: SessionEnd, node: HeldNode) => void) {
    this.peer = peer;
    this.#onEnd = onEnd;
    this.opened = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  sendWelcome(node: HeldNode): void {
    this.#resolve(node);
  }

  sendAck(): void {}

  sendMembership(): void {}

  sendSettings(): void {}

  sendWork(): void {}

  /** The agent may call any replica. */
  sendMove(): boolean {
    return false;
  }

  ended(end: SessionEnd, node: HeldNode | null): void {
    if (end.kind === "left") this.#reject(errorOf(end.farewell));
    if (node !== null) this.#onEnd(end, node);
  }
}
