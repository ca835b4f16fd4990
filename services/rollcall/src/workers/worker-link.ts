import cluster from "node:cluster";
import { EventEmitter } from "node:events";
import { createMetrics, type ProcessLike, renderMetrics } from "@rollcall/process";
import type { ReadyCheck, ReadyReport } from "@rollcall/rpc";
import type { Probes } from "../control-plane/open-probes.ts";

/** A worker's end of the channel to its primary. */
export interface WorkerLink {
  /** The data of the worker that the primary's probes show. */
  readonly probes: Probes;
  /** This process, as runProcess needs it. It gets at most one signal to end. */
  readonly process: ProcessLike;
  tell(message: FromWorker): void;
}

const SIGNALS: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGQUIT"]);

/** Start responding to the primary. */
export function openWorkerLink(process: NodeJS.Process): WorkerLink {
  const metrics = createMetrics();
  let check: ReadyCheck = () => ({ record: { ok: false, message: "not open yet" } });
  const answer = async (what: WorkerQuestion): Promise<string> =>
    what === "metrics" ? renderMetrics(metrics) : JSON.stringify(await readyOf(check));
  const tell = (message: FromWorker) => {
    // Ignore errors, because the primary may be gone.
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
 * Make sure that a worker gets one signal to end. Several senders can ask a worker to end: a service manager or
 * terminal that signals the whole process group, and the primary. Only the first request has an effect. If the
 * primary is gone, so are the shared ports, and its workers also end.
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
    // Handle this message like SIGHUP. The primary sends a message, because a signal would end a worker that
    // has no handler yet.
    else if (message.kind === "reload") process.emit("SIGHUP", "SIGHUP");
  });
  // Set this flag, because otherwise Node.js ends a worker immediately when its primary is gone.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  process.on("disconnect", () => end("the primary process has ended"));
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

/** A primary's question to a worker. */
export type WorkerQuestion = "ready" | "metrics";

/** A worker's message to its primary. */
export type FromWorker =
  /** The worker is about to take a lease for this instance. */
  | { readonly kind: "instance"; readonly instance: string }
  /** The worker holds its lease and listens. */
  | { readonly kind: "serving"; readonly port: number; readonly agentPort: number }
  /** The response to a question: the checks as JSON, or the metrics as text. */
  | { readonly kind: "answer"; readonly id: number; readonly text: string };

/** A primary's message to its workers. */
export type ToWorker =
  | { readonly kind: "ask"; readonly id: number; readonly what: WorkerQuestion }
  /** Reload the settings that can change while a process runs. */
  | { readonly kind: "reload" }
  /** Shut down in order. */
  | { readonly kind: "end" };

/** Whether a message is one of ours. Node.js sends its own messages over the same channel. */
export function isFromWorker(message: unknown): message is FromWorker {
  return isOneOf(message, ["instance", "serving", "answer"]);
}

/** Whether a message is one that our primary sends. */
function isToWorker(message: unknown): message is ToWorker {
  return isOneOf(message, ["ask", "end", "reload"]);
}

function isOneOf(message: unknown, kinds: readonly string[]): boolean {
  if (typeof message !== "object" || message === null || !("kind" in message)) return false;
  return kinds.some((kind) => kind === message.kind);
}
