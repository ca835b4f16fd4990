import type {
  Metadata,
  ServerInterceptingCall,
  ServerInterceptingCallInterface,
  ServerInterceptor,
} from "@grpc/grpc-js";
import { type ClientAddress, grpcAddressOf } from "../calls/client-address.ts";
import { type CallJournal, completeStatus, type JournaledCall, type Status } from "./call-journal.ts";
import { toGrpcStatus } from "./grpc-error.ts";

type Listener = Parameters<ServerInterceptingCallInterface["start"]>[0];

export interface GrpcObserverOptions {
  readonly journal: CallJournal;
  readonly clientAddress?: ClientAddress | undefined;
}

/**
 * Observe the start and end of each grpc-js call: log it, measure it, and add the documented code and reason to errors
 * that grpc-js creates itself. This replaces methods of the call. Wrapping the call in a ServerInterceptingCall
 * instead would cost several closures for every message of a stream. All calls share the replacements.
 */
export function observeGrpcCalls(options: GrpcObserverOptions): ServerInterceptor {
  const observer = new CallObserver(options);
  return (definition, call) => {
    const isStream = definition.requestStream || definition.responseStream;
    observer.begin(call, definition.path.slice(1), isStream);
    // Cast to the class that is declared as the type: grpc-js calls only the methods of the interface.
    return call as ServerInterceptingCall;
  };
}

/**
 * Stands for a request that cannot be decoded, and carries the error. Without it, grpc-js would use the same status
 * for all of these errors.
 */
export class Undecodable {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/**
 * The final statuses of calls, keyed by the metadata of their requests. Handlers and interceptors share that metadata.
 */
const statuses = new WeakMap<Metadata, Status>();

/** Get the final status of a grpc-js call; null if it has none yet, or if its caller disconnected. */
export function statusOf({ metadata }: { readonly metadata: Metadata }): Status | null {
  return statuses.get(metadata) ?? null;
}

/** The state of a call until it ends, stored on the call itself. */
interface Observed extends JournaledCall {
  /** The metadata of the request; null until the headers have arrived. */
  metadata: Metadata | null;
  /** The address of the peer, read while it is available; empty if the call is not logged. */
  peer: string;
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
      }
      methodsOf(this).sendStatus.call(this, completed);
    };
    this.#start = function (this: ObservedCall, listener: Listener) {
      const observed = this[OBSERVED];
      if (observed !== undefined) {
        const { onCancel, onReceiveMessage } = listener;
        // Modify the listener instead of wrapping it: the listener belongs to this call only, and its other methods
        // are called for each message.
        listener.onCancel = () => {
          journal.over(observed);
          onCancel.call(listener);
        };
        listener.onReceiveMessage = (message: unknown) => {
          if (message instanceof Undecodable) this.sendStatus(toGrpcStatus(message.error));
          else onReceiveMessage.call(listener, message);
        };
        observer.#open(this, observed, listener);
      }
      methodsOf(this).start.call(this, listener);
    };
  }

  begin(call: ObservedCall, method: string, isStream: boolean): void {
    const startMs = this.#options.journal.nowMs();
    call[OBSERVED] = { method, isStream, startMs, peer: "", metadata: null, hasEnded: false };
    call.sendStatus = this.#sendStatus;
    call.start = this.#start;
  }

  /** If calls are logged, read the client's address from the headers. */
  #open(call: ObservedCall, observed: Observed, listener: Listener): void {
    const { journal, clientAddress } = this.#options;
    const { onReceiveMetadata } = listener;
    listener.onReceiveMetadata = (metadata) => {
      observed.metadata = metadata;
      if (journal.isLogging) {
        observed.peer = grpcAddressOf({ metadata, getPeer: () => call.getPeer() }, clientAddress);
        journal.opened(observed);
      }
      onReceiveMetadata.call(listener, metadata);
    };
  }
}

/** The call's original methods, on its prototype. */
function methodsOf(call: ServerInterceptingCallInterface): ServerInterceptingCallInterface {
  return Object.getPrototypeOf(call);
}
