import type {
  Metadata,
  ServerInterceptingCall,
  ServerInterceptingCallInterface,
  ServerInterceptor,
} from "@grpc/grpc-js";
import { mapError } from "@rollcall/errors";
import { type ClientAddress, grpcAddressOf } from "../calls/client-address.ts";
import type { CallAdmission, CallPlace } from "../limits/call-admission.ts";
import { type CallJournal, completeStatus, type JournaledCall, type Status } from "./call-journal.ts";
import { toGrpcStatus } from "./grpc-error.ts";

type Listener = Parameters<ServerInterceptingCallInterface["start"]>[0];

export interface GrpcObserverOptions {
  readonly journal: CallJournal;
  readonly clientAddress?: ClientAddress | undefined;
  /** What limits the calls of a method; undefined for one that is not limited here. */
  admissionOf(method: string): CallAdmission | undefined;
}

/**
 * See each grpc-js call open and end: log it, measure it, and complete the errors that grpc-js makes by itself with the
 * code and reason of the contract. The call's own methods are replaced, rather than wrapped in a
 * ServerInterceptingCall, because that one would cost several closures for every message of a stream. The replacements
 * are shared by all calls.
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

/** A request that cannot be decoded: grpc-js itself has one status for all of them. */
export class Undecodable {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** The statuses that calls were ended with, by the metadata that they came with: handlers and interceptors share it. */
const statuses = new WeakMap<Metadata, Status>();

/** The status that a grpc-js call was ended with; null while it has none, and where its caller left. */
export function statusOf({ metadata }: { readonly metadata: Metadata }): Status | null {
  return statuses.get(metadata) ?? null;
}

/** What is kept of a call until it ends, on the call itself. */
interface Observed extends JournaledCall {
  /** Null until the headers have arrived. */
  metadata: Metadata | null;
  /** Read while the call has one; empty where it is neither logged nor limited. */
  peer: string;
  place: CallPlace | null;
}

const OBSERVED = Symbol("observed");

type ObservedCall = ServerInterceptingCallInterface & { [OBSERVED]?: Observed };

class CallObserver {
  readonly #options: GrpcObserverOptions;
  readonly #sendStatus: ServerInterceptingCallInterface["sendStatus"];
  readonly #start: ServerInterceptingCallInterface["start"];

  constructor(options: GrpcObserverOptions) {
    this.#options = options;
    const observer = this;
    const { journal } = options;
    this.#sendStatus = function (this: ObservedCall, status: Status) {
      const completed = completeStatus(status);
      const observed = this[OBSERVED];
      if (observed !== undefined) {
        const { metadata, hasEnded } = observed;
        if (metadata !== null && !hasEnded) statuses.set(metadata, completed);
        journal.ended(observed, completed);
        observed.place?.leave();
      }
      methodsOf(this).sendStatus.call(this, completed);
    };
    this.#start = function (this: ObservedCall, listener: Listener) {
      const observed = this[OBSERVED];
      if (observed !== undefined) {
        const { onCancel, onReceiveMessage } = listener;
        // Made for this call alone, and the other methods are called for each message: it is changed, not wrapped.
        listener.onCancel = () => {
          journal.over(observed);
          observed.place?.leave();
          onCancel.call(listener);
        };
        listener.onReceiveMessage = (message: unknown) => {
          if (message instanceof Undecodable) this.sendStatus(toGrpcStatus(message.error));
          else onReceiveMessage.call(listener, message);
        };
        observer.#admit(this, observed, listener);
      }
      methodsOf(this).start.call(this, listener);
    };
  }

  begin(call: ObservedCall, method: string, isStream: boolean): void {
    const startMs = this.#options.journal.nowMs();
    call[OBSERVED] = { method, isStream, startMs, peer: "", place: null, metadata: null, hasEnded: false };
    call.sendStatus = this.#sendStatus;
    call.start = this.#start;
  }

  /** Read the client address from the headers, and count the call for it. Only for calls that are limited or logged. */
  #admit(call: ObservedCall, observed: Observed, listener: Listener): void {
    const { journal, clientAddress, admissionOf } = this.#options;
    const { method, isStream } = observed;
    const admission = admissionOf(method);
    const isUnknown = !journal.isLogging && admission === undefined;
    const { onReceiveMetadata } = listener;
    listener.onReceiveMetadata = (metadata) => {
      observed.metadata = metadata;
      if (isUnknown) {
        onReceiveMetadata.call(listener, metadata);
        return;
      }
      const peer = grpcAddressOf({ metadata, getPeer: () => call.getPeer() }, clientAddress);
      observed.peer = peer;
      try {
        const from = { needs: "anyone", isStream, peer, authorization: null } as const;
        observed.place = admission?.enter(from) ?? null;
      } catch (error) {
        call.sendStatus(toGrpcStatus(mapError(error)));
        return;
      }
      journal.opened(observed);
      onReceiveMetadata.call(listener, metadata);
    };
  }
}

/** The methods that were replaced. */
function methodsOf(call: ServerInterceptingCallInterface): ServerInterceptingCallInterface {
  return Object.getPrototypeOf(call);
}
