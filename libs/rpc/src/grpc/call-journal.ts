import type { Code } from "@connectrpc/connect";
import { status as GrpcCode, type ServerInterceptingCallInterface } from "@grpc/grpc-js";
import { describeError, isCallersFault } from "@rollcall/errors";
import type { Clock, MetricsRegistry } from "@rollcall/process";
import { codeName } from "../calls/policy.ts";
import { rpcDurations } from "../interceptors/measure-calls.ts";
import type { StrangerLog } from "../limits/stranger-log.ts";
import { DETAILS_TRAILER, errorFromGrpc, toGrpcStatus } from "./grpc-error.ts";

export type Status = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];

/** What is known of a call until it ends. */
export interface JournaledCall {
  /** "rollcall.health.v1.HealthService/Heartbeat". */
  readonly method: string;
  readonly isStream: boolean;
  readonly startMs: number;
  /** Where it comes from; empty where that was not asked for. */
  readonly peer: string;
  /** Whether it has its status, or is over; set by the journal. */
  hasEnded: boolean;
}

export interface CallJournalOptions {
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Null when the service writes lines of its own. */
  readonly log: StrangerLog | null;
  /** Where faults of ours are told of, whatever `log` is. */
  readonly faults: StrangerLog;
}

/** Measures the calls of a port for long streams, and logs them. */
export class CallJournal {
  readonly #clock: Clock;
  readonly #log: StrangerLog | null;
  readonly #faults: StrangerLog;
  readonly #observe: ReturnType<typeof rpcDurations>;

  constructor({ clock, metrics, log, faults }: CallJournalOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#faults = faults;
    this.#observe = rpcDurations(metrics);
  }

  /** Whether it writes lines, which name where calls come from. */
  get isLogging(): boolean {
    return this.#log !== null;
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  /** A call was let in. */
  opened({ method, isStream, peer }: JournaledCall): void {
    if (!isStream || this.#log === null) return;
    const line = { level: "info", peer, what: "opened", fields: { method } } as const;
    this.#log.write({ ...line, message: "stream opened" });
  }

  /** A call gets its status: only the first one counts. */
  ended(call: JournaledCall, status: Status): void {
    if (call.hasEnded) return;
    if (status.code === GrpcCode.OK) {
      this.#end(call, undefined, {});
      return;
    }
    const { code, reason, message } = describeError(errorFromGrpc(status));
    this.#end(call, code, { reason, message });
  }

  /** A handler failed, and its call with it. */
  failed({ method, peer }: JournaledCall, err: unknown): void {
    const line = { level: "error", peer, what: "INTERNAL", fields: { err, method } } as const;
    this.#faults.write({ ...line, message: "call failed" });
  }

  /** A call is over, with its status or without. */
  over(call: JournaledCall): void {
    if (!call.hasEnded) this.#end(call, GrpcCode.CANCELLED as number, { reason: "CANCELLED" });
  }

  #end(
    call: JournaledCall,
    code: Code | undefined,
    fields: { readonly reason?: string | undefined; readonly message?: string },
  ): void {
    call.hasEnded = true;
    const { method, isStream, peer, startMs } = call;
    const durationMs = this.#clock.nowMs() - startMs;
    this.#observe(method, codeName(code), durationMs);
    if (this.#log === null) return;
    const line = {
      method,
      code: codeName(code),
      ...fields,
      duration_ms: Math.round(durationMs * 10) / 10,
    };
    const message = isStream ? "stream closed" : "call finished";
    this.#log.write({
      level: "info",
      peer,
      what: fields.reason ?? codeName(code),
      fields: line,
      message,
      isFault: code !== undefined && isCallersFault({ code, reason: fields.reason }),
    });
  }
}

/** The status with code and reason of the contract, where grpc-js made it by itself. */
export function completeStatus(status: Status): Status {
  if (status.code === GrpcCode.OK) return status;
  if ((status.metadata?.get(DETAILS_TRAILER).length ?? 0) > 0) return status;
  return toGrpcStatus(errorFromGrpc({ code: status.code, details: status.details ?? "" }));
}
