import { create, toBinary } from "@bufbuild/protobuf";
import {
  type Event,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { splitBySize } from "@rollcall/domain";
import { sendAsEncoded } from "@rollcall/rpc";
import type { StoredEvent } from "@rollcall/store";
import { eventToProto } from "@rollcall/wire";
import type { WindowPiece } from "./log-window.ts";
import { formatResumeToken } from "./resume-token.ts";
import { MESSAGE_BYTES, sizeOfEvent } from "./sizes.ts";
import type { EventMessages } from "./watch-events.ts";

/** As many events as one read has, within the bytes of a message. */
const ONE_MESSAGE = { items: Number.POSITIVE_INFINITY, bytes: MESSAGE_BYTES };

/** All watchers of the window share its events: each is converted once, whatever their number. */
const converted = new WeakMap<StoredEvent, Event>();

/** Messages for one watcher alone. */
export const OWN_MESSAGES: EventMessages<WatchEventsResponse> = {
  of: ({ items, through }, logId) =>
    [...splitBySize(items, sizeOfEvent, ONE_MESSAGE)].map((events) => {
      const last = events.at(-1);
      // Before the last part the message stands for its own last event.
      const revision = last === undefined || last === items.at(-1) ? through : last.revision;
      return response(events, revision, logId);
    }),
  bookmark: (revision, logId) => response([], revision, logId),
};

/**
 * Messages for all watchers that want every event: each is made and encoded once for those that ask for the same one
 * after the other, as the watchers of a round do. Only for binary formats.
 */
export class SharedMessages implements EventMessages<WatchEventsResponse> {
  #piece: WindowPiece<StoredEvent> | null = null;
  #messages: readonly WatchEventsResponse[] = [];
  #bookmark: { readonly revision: bigint; readonly logId: string; readonly message: WatchEventsResponse } | null = null;

  of(piece: WindowPiece<StoredEvent>, logId: string): readonly WatchEventsResponse[] {
    if (this.#piece !== piece) {
      this.#messages = OWN_MESSAGES.of(piece, logId).map(encoded);
      this.#piece = piece;
    }
    return this.#messages;
  }

  bookmark(revision: bigint, logId: string): WatchEventsResponse {
    const known = this.#bookmark;
    if (known !== null && known.revision === revision && known.logId === logId) return known.message;
    const message = encoded(OWN_MESSAGES.bookmark(revision, logId));
    this.#bookmark = { revision, logId, message };
    return message;
  }
}

function response(events: readonly StoredEvent[], revision: bigint, logId: string): WatchEventsResponse {
  const resumeToken = formatResumeToken({ kind: "position", logId, revision });
  return create(WatchEventsResponseSchema, { events: events.map(toProto), resumeToken, revision });
}

function toProto(event: StoredEvent): Event {
  const known = converted.get(event);
  if (known !== undefined) return known;
  const made = eventToProto(event);
  converted.set(event, made);
  return made;
}

/**
 * The same message as bytes: they travel as unknown fields, which any encoder copies as they are; calls of plain gRPC
 * write them framed. JSON has no unknown fields.
 */
function encoded(whole: WatchEventsResponse): WatchEventsResponse {
  const bytes = toBinary(WatchEventsResponseSchema, whole);
  const message = create(WatchEventsResponseSchema);
  const [tag] = bytes;
  if (tag === undefined) return message;
  // Numbers of fields below 16 have a tag of one byte. All that follows it counts as its value, further fields
  // included.
  message.$unknown = [{ no: tag >>> 3, wireType: tag & 7, data: bytes.subarray(1) }];
  sendAsEncoded(message, bytes);
  return message;
}
