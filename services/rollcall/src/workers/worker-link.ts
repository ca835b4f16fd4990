import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { createMetrics, type ProcessLike, renderMetrics } from "@rollcall/process";
import type { ReadyCheck, ReadyReport } from "@rollcall/rpc";
import type { Probes } from "../control-plane/open-probes.ts";

/** A worker's end of the channel to its primary. */
export interface WorkerLink {
  /** What the primary shows of this worker. */
  readonly probes: Probes;
  /** This process, for runProcess: it is told to end once, however many tell it to. */
  readonly process: ProcessLike;
  tell(message: FromWorker): void;
}

const SIGNALS: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGQUIT"]);

/** Begin to answer the primary. */
export function openWorkerLink(process: NodeJS.Process): WorkerLink {
  const metrics = createMetrics();
  let check: ReadyCheck = () => ({ record: { ok: false, message: "not open yet" } });
  const answer = async (what: WorkerQuestion): Promise<string> =>
    what === "metrics" ? renderMetrics(metrics) : JSON.stringify(await readyOf(check));
  const tell = (message: FromWorker) => {
    // The primary may be gone; it takes nothing amiss that it does not get.
    if (process.connected) process.send?.(message, undefined, {}, () => {});
  };
  process.on("message", (message: unknown) => {
    if (!isToWorker(message) || message.kind !== "ask") return;
    const { id, what } = message;
    void answer(what).then((text) => tell({ kind: "answer", id, text }));
  });
  return {
    probes: {
      port: 0,
      metrics,
      answerWith: (next) => {
        check = next;
      },
      close: async () => {},
    },
    process: endsOnce(process),
    tell,
  };
}

async function readyOf(check: ReadyCheck): Promise<ReadyReport> {
  try {
    return await check();
  } catch {
    return { checks: { ok: false, message: "the check itself failed" } };
  }
}

/**
 * A service manager may signal every process of a group, a terminal does, and the primary tells its workers besides:
 * the first one counts. A primary that is gone has taken the shared ports with it, so that its workers end as well.
 */
function endsOnce(process: NodeJS.Process): ProcessLike {
  const ends = new EventEmitter();
  let isTold = false;
  const end = (name: string) => {
    if (isTold) return;
    isTold = true;
    ends.emit("SIGTERM", name);
  };
  for (const signal of SIGNALS) process.on(signal, () => end(signal));
  process.on("message", (message: unknown) => {
    if (!isToWorker(message)) return;
    if (message.kind === "end") end("SIGTERM");
    // As a message, because a signal would end a worker that does not listen yet.
    else if (message.kind === "reload") process.emit("SIGHUP", "SIGHUP");
  });
  // Otherwise Node ends a worker on the spot when its primary is gone.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  process.on("disconnect", () => end("the end of the primary"));
  return {
    on: (event, listener) => {
      if (event === "SIGTERM") ends.on(event, listener);
      else if (!SIGNALS.has(event)) process.on(event, listener);
    },
    off: (event, listener) => {
      if (event === "SIGTERM") ends.off(event, listener);
      else if (!SIGNALS.has(event)) process.off(event, listener);
    },
    exit: (code) => process.exit(code),
  };
}

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
  /** Read again what can change while a process runs. */
  | { readonly kind: "reload" }
  /** End in order. */
  | { readonly kind: "end" };

/** Node sends messages of its own over the same channel: these alone are ours. */
export function isFromWorker(message: unknown): message is FromWorker {
  return isOneOf(message, ["instance", "serving", "answer"]);
}

/** Likewise, at the other end. */
function isToWorker(message: unknown): message is ToWorker {
  return isOneOf(message, ["ask", "end", "reload"]);
}

function isOneOf(message: unknown, kinds: readonly string[]): boolean {
  if (typeof message !== "object" || message === null || !("kind" in message)) return false;
  return kinds.some((kind) => kind === message.kind);
}
