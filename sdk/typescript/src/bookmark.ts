// Decides where a watch of events resumes. Does no I/O. Each watch has one object, which receives each message and
// each returned event.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Event,
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "./gen/rollcall/events/v1/events_pb.ts";

/**
 * A position in the event log: after the position of a resume token, and after the event with a revision. A message of
 * the log contains several events but only one token. So the position after an event within a message consists of the
 * previous message's token and the event's revision.
 */
export interface Bookmark {
  readonly token: string;
  readonly revision: bigint;
}

/** Parse the result of formatBookmark(), or a bare resume token. Throws RangeError for anything else. */
export function parseBookmark(text: string): Bookmark {
  const at = text.lastIndexOf("@");
  if (at < 0) return { token: text, revision: 0n };
  const revision = text.slice(at + 1);
  if (!/^\d{1,20}$/.test(revision)) throw new RangeError(`${JSON.stringify(text)} is not a bookmark`);
  return { token: text.slice(0, at), revision: BigInt(revision) };
}

/** Format a bookmark as text, to save it. */
export function formatBookmark({ token, revision }: Bookmark): string {
  return `${token}@${revision}`;
}

/** Tracks which events a watch has returned. */
export class EventPosition {
  readonly #request: WatchEventsRequest;
  #bookmark: Bookmark | null;

  constructor(request: MessageInitShape<typeof WatchEventsRequestSchema>, bookmark: Bookmark | null) {
    this.#request = create(WatchEventsRequestSchema, request);
    this.#bookmark = bookmark;
  }

  /** The position after the last returned event; null before the first message. */
  get bookmark(): Bookmark | null {
    return this.#bookmark;
  }

  /** The request that resumes the watch at this position. */
  nextRequest(): WatchEventsRequest {
    if (this.#bookmark === null) return this.#request;
    const { token, revision } = this.#bookmark;
    const start =
      token === ""
        ? ({ case: "afterRevision", value: revision } as const)
        : ({ case: "resumeToken", value: token } as const);
    return { ...this.#request, start };
  }

  /** The events of a message that were not returned yet. */
  unseen({ events }: WatchEventsResponse): readonly Event[] {
    const seen = this.#bookmark?.revision ?? 0n;
    return events.filter(({ revision }) => revision > seen);
  }

  /** Record that the event is about to be returned. */
  passed({ revision }: Event): void {
    this.#bookmark = { token: this.#bookmark?.token ?? "", revision };
  }

  /** Record that every event of the message was returned. Called when the next message is requested. */
  completed({ resumeToken, revision }: WatchEventsResponse): void {
    const seen = this.#bookmark?.revision ?? 0n;
    // The first message of a watch gives its starting point, which may be earlier than the last returned event.
    this.#bookmark = { token: resumeToken, revision: revision > seen ? revision : seen };
  }
}
