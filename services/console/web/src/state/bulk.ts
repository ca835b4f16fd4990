/** What was, or would be, done with one node. */
export interface Outcome {
  readonly id: string;
  /** Empty when it was done. */
  readonly refusal: string;
  readonly reason: string;
  /** Set when the server answered nothing about it. */
  readonly fate?: "unknown" | "not-sent";
}

/** The outcome of a call about many nodes; it has an outcome for each of them. */
export interface BulkResult {
  readonly outcomes: readonly Outcome[];
  /** What it failed with; null when it did not. */
  readonly failure: unknown;
}

/** How something is done with many nodes. */
export interface Bulk {
  readonly size: number;
  /** Do it with some of them; outcomes are heard of as they come, also before it fails. */
  readonly send: (nodes: readonly string[], hear: (outcomes: readonly Outcome[]) => void) => Promise<void>;
  /** Checked before each part; the one that is on its way is waited for. */
  readonly signal?: AbortSignal | undefined;
  readonly onOutcomes?: ((done: number) => void) | undefined;
}

/** Do something with nodes, one part of them after the other, until all are done, it fails, or it is stopped. */
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
      ...unknown.map((id) => ({ id, refusal: "whether it was done is not known", reason: "UNKNOWN", fate: UNKNOWN })),
      ...ids.slice(sent).map((id) => ({ id, refusal: "not sent", reason: "NOT_SENT", fate: NOT_SENT })),
    ],
    failure,
  };
}

const UNKNOWN = "unknown" as const;
const NOT_SENT = "not-sent" as const;

/** Ids of requests: the same one for the same intent, so that what is sent again is done once. */
export class RequestIds {
  readonly #known = new Map<string, string>();
  readonly #make: () => string;

  constructor(make: () => string = () => crypto.randomUUID()) {
    this.#make = make;
  }

  /** The id of what is intended, in any words that tell it from what else may be. */
  of(...intent: readonly unknown[]): string {
    const key = JSON.stringify(intent);
    const id = this.#known.get(key) ?? this.#make();
    this.#known.set(key, id);
    return id;
  }

  /** Learn that everything was answered: what is asked for from now on is another intent. */
  answered(): void {
    this.#known.clear();
  }
}

/** Parts of a list, each of a bounded size. */
export function chunksOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}
