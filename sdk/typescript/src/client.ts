import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { EventWatch, type EventWatchOptions } from "./event-watch.ts";
import type { WatchEventsRequestSchema } from "./gen/rollcall/events/v1/events_pb.ts";
import type { RetryPolicy } from "./retry.ts";
import { Services } from "./services.ts";

/** The services that may each have an address of its own. */
export type ServiceName = "registry" | "health" | "admin" | "scheduler";

/** All of them. */
export const SERVICE_NAMES: readonly ServiceName[] = ["registry", "health", "admin", "scheduler"];

/** How calls are made, in Node and in browsers. */
export interface CallingOptions {
  /** Milliseconds that a call may take, its retries included, unless it says otherwise. Default: 10,000. */
  readonly timeoutMs?: number;
  readonly retry?: Partial<RetryPolicy>;
}

/** What a call may take unless the client or the call says otherwise. */
export const DEFAULT_TIMEOUT_MS = 10_000;
/** Pages are bounded at about 1 MiB; a page of one large item may exceed that. */
export const MOST_MESSAGE_BYTES = 16 * 1024 * 1024;

/** The API of one control plane, over given transports: what clients in Node and in browsers share. */
export class ApiClient extends Services {
  constructor(transports: Readonly<Record<ServiceName, Transport>>) {
    super(transports);
  }

  /**
   * Events as they happen, over restarts of the control plane: none missing, none twice. Iterating throws RollcallError
   * when the log cannot be read from there (`Reason.REVISION_COMPACTED`), and when nothing was heard for
   * `giveUpAfterMs`. Throws RangeError for what is no bookmark.
   */
  watchEvents(
    request: MessageInitShape<typeof WatchEventsRequestSchema> = {},
    options: EventWatchOptions = {},
  ): EventWatch {
    return new EventWatch(this, request, options);
  }
}
