import { refuse } from "@rollcall/errors";
import { type FailedAttempts, nodeAttempt } from "@rollcall/rpc";

/** The sender of a Hello. */
export interface Greeting {
  readonly nodeId: string;
  /** The peer as HOST:PORT. */
  readonly peer: string;
}

/**
 * Maximum number of Hellos in progress per node. A node has one stream, or two to three while it moves. Only a
 * faulty agent or an impostor opens more.
 */
const MOST_WAITING_HELLOS = 32;

/**
 * Limits the Hellos that reach the HelloQueue. Admits no Hello from a source with too many failures, and only
 * a limited number of Hellos per node at a time.
 */
export class HelloGate {
  readonly #failures: FailedAttempts | null;
  /** Number of Hellos in progress, keyed by node. */
  readonly #waiting = new Map<string, number>();

  constructor(failures: FailedAttempts | null) {
    this.#failures = failures;
  }

  /** Check that a Hello may be verified. Throws TOO_MANY_FAILURES. */
  check({ nodeId, peer }: Greeting): void {
    this.#failures?.check(nodeAttempt(peer, nodeId));
  }

  /** Admit a Hello until leave() is called. Throws TOO_MANY_FAILURES or TOO_MANY_STREAMS. */
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

  /** Record that the proof of a Hello is valid. */
  proven({ nodeId, peer }: Greeting): void {
    this.#failures?.passed(nodeAttempt(peer, nodeId));
  }

  /** Record that a Hello was refused. */
  refused({ nodeId, peer }: Greeting, error: unknown): void {
    this.#failures?.ended(nodeAttempt(peer, nodeId), error);
  }
}

function tooManyStreams(node: string): Error {
  const limit = String(MOST_WAITING_HELLOS);
  const message = `${limit} streams of node ${node} are already waiting for their Welcome; open one at a time`;
  return refuse("TOO_MANY_STREAMS", message, { metadata: { node, limit }, retryAfterMs: 5_000 });
}
