/** What a primary can ask a worker. */
export type WorkerQuestion = "ready" | "metrics";

/** What a worker tells its primary. */
export type FromWorker =
  /** Under this instance it will take its lease. */
  | { readonly kind: "instance"; readonly instance: string }
  /** It holds its lease and listens. */
  | { readonly kind: "serving"; readonly port: number; readonly agentPort: number }
  /** The answer to a question: JSON of the checks, or the text of the metrics. */
  | { readonly kind: "answer"; readonly id: number; readonly text: string };

/** What a primary tells its workers. */
export type ToWorker =
  | { readonly kind: "ask"; readonly id: number; readonly what: WorkerQuestion }
  /** End in order. */
  | { readonly kind: "end" };

/** Node sends messages of its own over the same channel: these alone are ours. */
export function isFromWorker(message: unknown): message is FromWorker {
  return isOneOf(message, ["instance", "serving", "answer"]);
}

/** Likewise, at the other end. */
export function isToWorker(message: unknown): message is ToWorker {
  return isOneOf(message, ["ask", "end"]);
}

function isOneOf(message: unknown, kinds: readonly string[]): boolean {
  if (typeof message !== "object" || message === null || !("kind" in message)) return false;
  return kinds.some((kind) => kind === message.kind);
}
