import type { Code } from "@connectrpc/connect";
import {
  status as GrpcCode,
  type ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from "@grpc/grpc-js";
import { describeError, isCallersFault, mapError } from "@rollcall/errors";
import type { Clock, MetricsRegistry } from "@rollcall/process";
import { type ClientAddress, grpcAddressOf } from "../calls/client-address.ts";
import { codeName } from "../calls/policy.ts";
import { rpcDurations } from "../interceptors/measure-calls.ts";
import type { CallAdmission, CallPlace } from "../limits/call-admission.ts";
import type { StrangerLog } from "../limits/stranger-log.ts";
import { type CallEnds, FrameCall, type FrameHandler } from "./frame-call.ts";
import { DETAILS_TRAILER, errorFromGrpc, toGrpcStatus } from "./grpc-error.ts";

type Listener = Parameters<ServerInterceptingCallInterface["start"]>[0];
type Status = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];

export interface GrpcObserverOptions {
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Null when the service writes lines of its own. */
  readonly log: StrangerLog | null;
  readonly clientAddress?: ClientAddress | undefined;
  /** What limits the calls of a method; undefined for one that is not limited here. */
  admissionOf(method: string): CallAdmission | undefined;
  /** Takes the calls of a method in place of its handler; undefined where the handler does. */
  framesOf(method: string): FrameHandler<unknown> | undefined;
}

/**
 * See each grpc-js call open and end: log it, measure it, and complete the errors that grpc-js makes by itself with the
 * code and reason of the contract. The call's own methods are replaced, rather than wrapped in a
 * ServerInterceptingCall, because that one would cost several closures for every message of a stream. The replacements
 * are shared by all calls, for the memory of ten thousand streams.
 */
export function observeGrpcCalls(options: GrpcObserverOptions): ServerInterceptor {
  const observer = new CallObserver(options);
  return (definition, call) => {
    const isStream = definition.requestStream || definition.responseStream;
    observer.begin(call, definition.path.slice(1), isStream);
    // The declared type is that class; what is called are the methods of the interface alone.
    return call as ServerInterceptingCall;
  };
}

/** What is kept of a call until it ends, on the call itself. */
interface Observed {
  readonly method: string;
  readonly isStream: boolean;
  readonly startMs: number;
  /** Read while the call has one; empty where it is neither logged nor limited. */
  peer: string;
  place: CallPlace | null;
  hasEnded: boolean;
}

const OBSERVED = Symbol("observed");

type ObservedCall = ServerInterceptingCallInterface & { [OBSERVED]?: Observed };

class CallObserver {
  readonly #options: GrpcObserverOptions;
  readonly #observe: ReturnType<typeof rpcDurations>;
  readonly #sendStatus: ServerInterceptingCallInterface["sendStatus"];
  readonly #start: ServerInterceptingCallInterface["start"];

  constructor(options: GrpcObserverOptions) {
    this.#options = options;
    this.#observe = rpcDurations(options.metrics);
    const observer = this;
    this.#sendStatus = function (this: ObservedCall, status: Status) {
      const completed = completeStatus(status);
      observer.#onStatus(this, completed);
      methodsOf(this).sendStatus.call(this, completed);
    };
    const ends: CallEnds = {
      hasEnded: (call: ObservedCall) => call[OBSERVED]?.hasEnded ?? true,
      onCancelled: (call: ObservedCall) => {
        observer.#end(call, GrpcCode.CANCELLED as number, { reason: "CANCELLED" });
      },
    };
    this.#start = function (this: ObservedCall, theirs: Listener) {
      const frames = options.framesOf(this[OBSERVED]?.method ?? "");
      const listener = frames === undefined ? theirs : new FrameCall(this, frames, ends);
      if (frames === undefined) {
        const { onCancel } = theirs;
        // Made for this call alone, and the other methods are called for each message: it is changed, not wrapped.
        theirs.onCancel = () => {
          ends.onCancelled(this);
          onCancel.call(theirs);
        };
      }
      observer.#admit(this, listener);
      methodsOf(this).start.call(this, listener);
    };
  }

  begin(call: ObservedCall, method: string, isStream: boolean): void {
    const startMs = this.#options.clock.nowMs();
    call[OBSERVED] = { method, isStream, startMs, peer: "", place: null, hasEnded: false };
    call.sendStatus = this.#sendStatus;
    call.start = this.#start;
  }

  /** Learn from its headers where a call comes from, and let it in; for those that are limited or logged. */
  #admit(call: ObservedCall, listener: Listener): void {
    const observed = call[OBSERVED];
    const { log, clientAddress, admissionOf } = this.#options;
    const admission = observed === undefined ? undefined : admissionOf(observed.method);
    if (observed === undefined || (log === null && admission === undefined)) return;
    const { method, isStream } = observed;
    const { onReceiveMetadata } = listener;
    listener.onReceiveMetadata = (metadata) => {
      const peer = grpcAddressOf({ metadata, getPeer: () => call.getPeer() }, clientAddress);
      observed.peer = peer;
      try {
        const from = { needs: "anyone", isStream, peer, authorization: null } as const;
        observed.place = admission?.enter(from) ?? null;
      } catch (error) {
        call.sendStatus(toGrpcStatus(mapError(error)));
        return;
      }
      const line = { level: "info", peer, what: "opened", fields: { method } } as const;
      if (isStream) log?.write({ ...line, message: "stream opened" });
      onReceiveMetadata.call(listener, metadata);
    };
  }

  #onStatus(call: ObservedCall, status: Status): void {
    if (status.code === GrpcCode.OK) {
      this.#end(call, undefined, {});
      return;
    }
    const { code, reason, message } = describeError(errorFromGrpc(status));
    this.#end(call, code, { reason, message });
  }

  #end(
    call: ObservedCall,
    code: Code | undefined,
    fields: { readonly reason?: string | undefined; readonly message?: string },
  ): void {
    const observed = call[OBSERVED];
    if (observed === undefined || observed.hasEnded) return;
    observed.hasEnded = true;
    observed.place?.leave();
    const { clock, log } = this.#options;
    const { method, isStream, peer, startMs } = observed;
    const durationMs = clock.nowMs() - startMs;
    this.#observe(method, codeName(code), durationMs);
    if (log === null) return;
    const line = {
      method,
      code: codeName(code),
      ...fields,
      duration_ms: Math.round(durationMs * 10) / 10,
    };
    const message = isStream ? "stream closed" : "call finished";
    log.write({
      level: "info",
      peer,
      what: fields.reason ?? codeName(code),
      fields: line,
      message,
      isFault: code !== undefined && isCallersFault({ code, reason: fields.reason }),
    });
  }
}

/** The methods that were replaced. */
function methodsOf(call: ServerInterceptingCallInterface): ServerInterceptingCallInterface {
  return Object.getPrototypeOf(call);
}

/** The status with code and reason of the contract, where grpc-js made it by itself. */
function completeStatus(status: Status): Status {
  if (status.code === GrpcCode.OK) return status;
  if ((status.metadata?.get(DETAILS_TRAILER).length ?? 0) > 0) return status;
  return toGrpcStatus(errorFromGrpc({ code: status.code, details: status.details ?? "" }));
}
