import { Code, type ConnectError } from "@connectrpc/connect";
import { describeError, isCallersFault } from "@rollcall/errors";
import type { Clock, MetricsRegistry } from "@rollcall/process";
import { codeName } from "../calls/policy.ts";
import { rpcDurations } from "../interceptors/measure-calls.ts";
import type { AnonymousLog } from "../limits/anonymous-log.ts";

/** What the journal knows about a call until the call ends. */
export interface JournaledCall {
  /** The called method, such as "rollcall.health.v1.HealthService/Heartbeat". */
  readonly method: string;
  readonly isStream: boolean;
  readonly startMs: number;
  /** The address of the peer; empty if the call is neither logged nor limited. */
  readonly peer: string;
  /** Whether the call has its status or has ended. The journal sets it. */
  hasEnded: boolean;
}

export interface CallJournalOptions {
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Where calls are logged; null if the service writes its own lines. */
  readonly log: AnonymousLog | null;
  /** Where failures of handlers are logged, even if `log` is null. */
  readonly faults: AnonymousLog;
}

/** Measures and logs the calls of a port for long streams. */
export class CallJournal {
  readonly #clock: Clock;
  readonly #log: AnonymousLog | null;
  readonly #faults: AnonymousLog;
  readonly #observe: ReturnType<typeof rpcDurations>;

  constructor({ clock, metrics, log, faults }: CallJournalOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#faults = faults;
    this.#observe = rpcDurations(metrics);
  }

  /** Whether calls are logged, with their peers. */
  get isLogging(): boolean {
    return this.#log !== null;
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  /** Record that a call was admitted. */
  opened({ method, isStream, peer }: JournaledCall): void {
    if (!isStream || this.#log === null) return;
    const line = { level: "info", peer, what: "opened", fields: { method } } as const;
    this.#log.write({ ...line, message: "stream opened" });
  }

  /** Record that a call has ended with an error, or with status OK if it is null. Further ends are ignored. */
  ended(call: JournaledCall, error: ConnectError | null): void {
    if (call.hasEnded) return;
    if (error === null) {
      this.#end(call, undefined, {});
      return;
    }
    const { code, reason, message } = describeError(error);
    this.#end(call, code, { reason, message });
  }

  /** Record that a call failed because its handler failed. */
  failed({ method, peer }: JournaledCall, err: unknown): void {
    const line = { level: "error", peer, what: "INTERNAL", fields: { err, method } } as const;
    this.#faults.write({ ...line, message: "call failed" });
  }

  /** Record the end of a call, with or without a status. */
  over(call: JournaledCall): void {
    if (!call.hasEnded) this.#end(call, Code.Canceled, { reason: "CANCELLED" });
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
