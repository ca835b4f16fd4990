import { create, toBinary } from "@bufbuild/protobuf";
import {
  type Event,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { splitBySize } from "@rollcall/domain";
import { sendAsEncoded } from "@rollcall/rpc";
import type { EventRow } from "@rollcall/store";
import { eventToProto } from "@rollcall/wire";
import type { WindowPiece } from "./log-window.ts";
import { formatResumeToken } from "./resume-token.ts";
import { MESSAGE_BYTES, sizeOfEvent } from "./sizes.ts";
import type { EventMessages } from "./watch-events.ts";

/** The limits of one message: any number of events, up to the maximum size of a message. */
const ONE_MESSAGE = { items: Number.POSITIVE_INFINITY, bytes: MESSAGE_BYTES };

/** The converted events of the window. All watchers share them, so that each event is converted only once. */
const converted = new WeakMap<EventRow, Event>();

/** Messages for a single watcher. */
export const OWN_MESSAGES: EventMessages<WatchEventsResponse> = {
  of: ({ items, through }, logId) =>
    [...splitBySize(items, sizeOfEvent, ONE_MESSAGE)].map((events) => {
      const last = events.at(-1);
      // The last message has the revision of the piece. Every other message has the revision of its last event.
      const revision = last === undefined || last === items.at(-1) ? through : last.revision;
      return response(events, revision, logId);
    }),
  bookmark: (revision, logId) => response([], revision, logId),
};

/**
 * Messages for all watchers without a filter. A message that watchers request in succession, as those of one round do,
 * is created and encoded once. Used only for binary formats.
 */
export class SharedMessages implements EventMessages<WatchEventsResponse> {
  #piece: WindowPiece<EventRow> | null = null;
  #messages: readonly WatchEventsResponse[] = [];
  #bookmark: { readonly revision: bigint; readonly logId: string; readonly message: WatchEventsResponse } | null = null;

  of(piece: WindowPiece<EventRow>, logId: string): readonly WatchEventsResponse[] {
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

function response(events: readonly EventRow[], revision: bigint, logId: string): WatchEventsResponse {
  const resumeToken = formatResumeToken({ kind: "position", logId, revision });
  return create(WatchEventsResponseSchema, { events: events.map(toProto), resumeToken, revision });
}

function toProto(event: EventRow): Event {
  const known = converted.get(event);
  if (known !== undefined) return known;
  const made = eventToProto(event);
  converted.set(event, made);
  return made;
}

/**
 * The same message in encoded form. Its bytes are an unknown field, which every encoder copies unchanged. Calls of
 * plain gRPC write the bytes with a frame around them. JSON has no unknown fields.
 */
function encoded(whole: WatchEventsResponse): WatchEventsResponse {
  const bytes = toBinary(WatchEventsResponseSchema, whole);
  const message = create(WatchEventsResponseSchema);
  const [tag] = bytes;
  if (tag === undefined) return message;
  // A field number below 16 has a one-byte tag. All bytes after the tag count as the value of the unknown field, even
  // if they contain more fields.
  message.$unknown = [{ no: tag >>> 3, wireType: tag & 7, data: bytes.subarray(1) }];
  sendAsEncoded(message, bytes);
  return message;
}
