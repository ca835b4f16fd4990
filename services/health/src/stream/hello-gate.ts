import { refuse } from "@rollcall/errors";
import { type FailedAttempts, nodeAttempt } from "@rollcall/rpc";

/** Who says hello. */
export interface Greeting {
  readonly nodeId: string;
  /** HOST:PORT. */
  readonly peer: string;
}

/** A node has one stream, or two or three while it moves. More are a fault, or not the node. */
const MOST_WAITING_HELLOS = 32;

/** Admits hellos to the desk: none from where too many failed, and only so many of one node at a time. */
export class HelloGate {
  readonly #failures: FailedAttempts | null;
  /** Hellos under way, by node. */
  readonly #waiting = new Map<string, number>();

  constructor(failures: FailedAttempts | null) {
    this.#failures = failures;
  }

  /** Check that a hello may be verified. Throws TOO_MANY_FAILURES. */
  check({ nodeId, peer }: Greeting): void {
    this.#failures?.check(nodeAttempt(peer, nodeId));
  }

  /** Admit a hello until leave() is called. Throws TOO_MANY_FAILURES or TOO_MANY_STREAMS. */
  enter(greeting: Greeting): void {
    const { nodeId } = greeting;
    this.check(greeting);
    const waiting = this.#waiting.get(nodeId) ?? 0;
    if (waiting >= MOST_WAITING_HELLOS) throw tooManyStreams(nodeId);
    this.#waiting.set(nodeId, waiting + 1);
  }

  leave({ nodeId }: Greeting): void {
    const left = (this.#waiting.get(nodeId) ?? 1) - 1;
    if (left === 0) this.#waiting.delete(nodeId);
    else this.#waiting.set(nodeId, left);
  }

  /** Its proof is valid. */
  proven({ nodeId, peer }: Greeting): void {
    this.#failures?.passed(nodeAttempt(peer, nodeId));
  }

  /** It was refused. */
  refused({ nodeId, peer }: Greeting, error: unknown): void {
    this.#failures?.ended(nodeAttempt(peer, nodeId), error);
  }
}

function tooManyStreams(node: string): Error {
  const limit = String(MOST_WAITING_HELLOS);
  const message = `${limit} streams of node ${node} already wait for their Welcome; open one at a time`;
  return refuse("TOO_MANY_STREAMS", message, { metadata: { node, limit }, retryAfterMs: 5_000 });
}
