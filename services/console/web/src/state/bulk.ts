/** The result for one node. */
export interface Outcome {
  readonly id: string;
  /** The reason of the refusal; "" when the call succeeded. */
  readonly refusal: string;
  readonly reason: string;
  /** Set when the server sent no result for the node. */
  readonly fate?: "unknown" | "not-sent";
}

/** The result of a bulk call, with an outcome for every node. */
export interface BulkResult {
  readonly outcomes: readonly Outcome[];
  /** The error that ended the call; null for none. */
  readonly failure: unknown;
}

/** How to carry out a bulk call. */
export interface Bulk {
  readonly size: number;
  /** Call the server for some nodes. Reports outcomes as they arrive, even if an error follows. */
  readonly send: (nodes: readonly string[], hear: (outcomes: readonly Outcome[]) => void) => Promise<void>;
  /** Checked before each batch. A batch in progress is finished. */
  readonly signal?: AbortSignal | undefined;
  readonly onOutcomes?: ((done: number) => void) | undefined;
}

/** Send nodes in batches, one after the other, until all are done, one fails, or the signal aborts. */
export async function inParts(ids: readonly string[], { size, send, signal, onOutcomes }: Bulk): Promise<BulkResult> {
  const outcomes: Outcome[] = [];
  let [sent, failure]: [number, unknown] = [0, null];
  for (const nodes of chunksOf(ids, size)) {
    if (signal?.aborted) break;
    sent += nodes.length;
    try {
      await send(nodes, (came) => {
        outcomes.push(...came);
        onOutcomes?.(outcomes.length);
      });
    } catch (cause) {
      failure = cause ?? new Error("The call failed.");
      break;
    }
  }
  const known = new Set(outcomes.map(({ id }) => id));
  const unknown = failure === null ? [] : ids.slice(0, sent).filter((id) => !known.has(id));
  return {
    outcomes: [
      ...outcomes,
      ...unknown.map((id) => ({ id, refusal: "the result is unknown", reason: "UNKNOWN", fate: UNKNOWN })),
      ...ids.slice(sent).map((id) => ({ id, refusal: "not sent", reason: "NOT_SENT", fate: NOT_SENT })),
    ],
    failure,
  };
}

const UNKNOWN = "unknown" as const;
const NOT_SENT = "not-sent" as const;

/** Assigns request ids: the same id for the same intent, so that repeating a request has one effect. */
export class RequestIds {
  readonly #known = new Map<string, string>();
  readonly #make: () => string;

  constructor(make: () => string = () => crypto.randomUUID()) {
    this.#make = make;
  }

  /** The request id for an intent. An intent is described by any values that distinguish it from others. */
  of(...intent: readonly unknown[]): string {
    const key = JSON.stringify(intent);
    const id = this.#known.get(key) ?? this.#make();
    this.#known.set(key, id);
    return id;
  }

  /** Forget all ids after a complete response, because the next request is a new intent. */
  answered(): void {
    this.#known.clear();
  }
}

/** Split a list into chunks of bounded size. */
export function chunksOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}
