import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { EventWatch, type EventWatchOptions } from "./event-watch.ts";
import type { WatchEventsRequestSchema } from "./gen/rollcall/events/v1/events_pb.ts";
import type { RetryPolicy } from "./retry.ts";
import { Services } from "./services.ts";

/** The services that can each have a separate address. */
export type ServiceName = "registry" | "health" | "admin" | "scheduler";

/** All service names. */
export const SERVICE_NAMES: readonly ServiceName[] = ["registry", "health", "admin", "scheduler"];

/** The settings for calls, in Node and in browsers. */
export interface CallingOptions {
  /** Time limit of a call in milliseconds, including retries, unless the call sets its own. Default: 10,000. */
  readonly timeoutMs?: number;
  readonly retry?: Partial<RetryPolicy>;
}

/** The time limit of a call unless the client or the call sets its own. */
export const DEFAULT_TIMEOUT_MS = 10_000;
/**
 * The maximum size of a message. Pages are limited to about 1 MiB, but a page of one large item can exceed that.
 */
export const MOST_MESSAGE_BYTES = 16 * 1024 * 1024;

/** The API of one control plane over given transports, shared by the clients for Node and for browsers. */
export class ApiClient extends Services {
  constructor(transports: Readonly<Record<ServiceName, Transport>>) {
    super(transports);
  }

  /**
   * Watch events across restarts of the control plane. Iterating returns every event exactly once. It throws
   * RollcallError if the log no longer contains the start (`Reason.REVISION_COMPACTED`), or if nothing was received
   * for `giveUpAfterMs`. Throws RangeError for an invalid bookmark.
   */
  watchEvents(
    request: MessageInitShape<typeof WatchEventsRequestSchema> = {},
    options: EventWatchOptions = {},
  ): EventWatch {
    return new EventWatch(this, request, options);
  }
}
