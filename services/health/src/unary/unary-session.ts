import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { HeldNode } from "../replica/held-node.ts";
import { AgentSession } from "../session/agent-session.ts";
import { errorOf } from "../session/farewell-error.ts";
import type { AgentLink, SessionEnd, SessionHost } from "../session/session-host.ts";

/** The method that the proof of a unary Hello names. */
export const REPORT_METHOD = "/rollcall.health.v1.HealthQueryService/ReportHeartbeat";

/** A session that was opened by a call. */
export interface UnarySession {
  readonly node: HeldNode;
  readonly session: AgentSession;
}

/**
 * Open the session of an agent that calls instead of holding a stream. It rejects with why it was not opened.
 *
 * @param onEnd told when an open session has ended, so that the agent learns why with its next call.
 */
export async function openUnarySession(
  hello: { readonly hello: Hello; readonly nonce: Uint8Array; readonly peer: string },
  host: SessionHost,
  onEnd: (end: SessionEnd, node: HeldNode) => void,
): Promise<UnarySession> {
  const { nonce, peer } = hello;
  const link = new CallLink(peer, onEnd);
  const session = new AgentSession(link, host, { firstSequence: 1, nonce, helloWithinMs: null });
  // It may be refused before anything waits for it.
  link.opened.catch(() => {});
  session.receive({ kind: "hello", hello: hello.hello });
  return { node: await link.opened, session };
}

/** The answers of calls: what is sent to the agent waits for the next one, which tells it as it then is. */
class CallLink implements AgentLink {
  readonly peer: string;
  readonly proofMethod = REPORT_METHOD;
  readonly takesOldBeats = false;
  readonly isBehind = false;
  readonly isTooSlow = false;
  /** The node, once the session is open; rejects with why it was not opened. */
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

  /** The agent calls whichever replica it likes. */
  sendMove(): boolean {
    return false;
  }

  ended(end: SessionEnd, node: HeldNode | null): void {
    if (end.kind === "left") this.#reject(errorOf(end.farewell));
    if (node !== null) this.#onEnd(end, node);
  }
}
