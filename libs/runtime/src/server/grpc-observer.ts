import type { Code } from "@connectrpc/connect";
import {
  status as GrpcCode,
  type ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";
import { describeError, refuse } from "../errors.ts";
import { DETAILS_TRAILER, errorFromGrpc } from "../grpc-error.ts";
import { toGrpcStatus } from "../grpc-status.ts";
import type { Logger } from "../logging.ts";
import type { MetricsRegistry } from "../metrics.ts";
import { codeName } from "./interceptors/code-name.ts";
import { rpcDurations } from "./interceptors/measure-calls.ts";

type Listener = Parameters<ServerInterceptingCallInterface["start"]>[0];
type Status = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];

export interface GrpcObserverOptions {
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Null when the service writes lines of its own. */
  readonly log: Logger | null;
}

/**
 * See each grpc-js call open and end: log it, measure it, and complete the errors that grpc-js makes by itself with the
 * code and reason of the contract. The call's own methods are replaced, rather than wrapped in a ServerInterceptingCall,
 * because that one would cost several closures for every message of a stream.
 */
export function observeGrpcCalls(options: GrpcObserverOptions): ServerInterceptor {
  const observe = rpcDurations(options.metrics);
  return (definition, call) => {
    const method = definition.path.slice(1);
    const isStream = definition.requestStream || definition.responseStream;
    const startMs = options.clock.nowMs();
    const common = { method, peer: call.getPeer() };
    let ended = false;
    const end = (code: Code | undefined, fields: object) => {
      if (ended) return;
      ended = true;
      const durationMs = options.clock.nowMs() - startMs;
      observe(method, codeName(code), durationMs);
      const line = {
        ...common,
        code: codeName(code),
        ...fields,
        duration_ms: Math.round(durationMs * 10) / 10,
      };
      options.log?.info(line, isStream ? "stream closed" : "call finished");
    };
    if (isStream) options.log?.info(common, "stream opened");
    observeStatus(call, end);
    observeCancel(call, () => end(GrpcCode.CANCELLED as number, { reason: "CANCELLED" }));
    // The declared type is that class; what is called are the methods of the interface alone.
    return call as ServerInterceptingCall;
  };
}

function observeStatus(
  call: ServerInterceptingCallInterface,
  end: (code: Code | undefined, fields: object) => void,
): void {
  const sendStatus = call.sendStatus.bind(call);
  call.sendStatus = (status) => {
    const completed = completeStatus(status);
    if (completed.code === GrpcCode.OK) {
      end(undefined, {});
    } else {
      const { code, reason, message } = describeError(errorFromGrpc(completed));
      end(code, { reason, message });
    }
    sendStatus(completed);
  };
}

function observeCancel(call: ServerInterceptingCallInterface, onCancel: () => void): void {
  const start = call.start.bind(call);
  call.start = (listener: Listener) =>
    start({
      onReceiveMetadata: (metadata) => listener.onReceiveMetadata(metadata),
      // Handed on as they are: these two are called for each message.
      onReceiveMessage: listener.onReceiveMessage,
      onReceiveHalfClose: listener.onReceiveHalfClose,
      onCancel: () => {
        onCancel();
        listener.onCancel();
      },
    });
}

/** The status with code and reason of the contract, where grpc-js made it by itself. */
function completeStatus(status: Status): Status {
  if (status.code === GrpcCode.OK) return status;
  if ((status.metadata?.get(DETAILS_TRAILER).length ?? 0) > 0) return status;
  const details = status.details ?? "";
  if (status.code === GrpcCode.INTERNAL && details.startsWith("Error deserializing request")) {
    return toGrpcStatus(refuse("MALFORMED_MESSAGE", "the message cannot be decoded"));
  }
  if (status.code === GrpcCode.RESOURCE_EXHAUSTED && /larger than/.test(details)) {
    return toGrpcStatus(refuse("MESSAGE_TOO_LARGE", details));
  }
  return toGrpcStatus(errorFromGrpc({ code: status.code, details }));
}
