// Where a watch of events goes on. Pure: one object a watch, told each message and each event that was handed out.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Event,
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "./gen/rollcall/events/v1/events_pb.ts";

/**
 * A place in the log: after what a resume token stands for, and after the event of a revision. A message of the log has
 * several events and one token for all of them; within it the place is the token of the message before, and the
 * revision of the last event that was handed out.
 */
export interface Bookmark {
  readonly token: string;
  readonly revision: bigint;
}

/** Read what formatBookmark() wrote, or a bare resume token. Throws RangeError for what is neither. */
export function parseBookmark(text: string): Bookmark {
  const at = text.lastIndexOf("@");
  if (at < 0) return { token: text, revision: 0n };
  const revision = text.slice(at + 1);
  if (!/^\d{1,20}$/.test(revision)) throw new RangeError(`${JSON.stringify(text)} is not a bookmark`);
  return { token: text.slice(0, at), revision: BigInt(revision) };
}

/** A bookmark as text, to keep. */
export function formatBookmark({ token, revision }: Bookmark): string {
  return `${token}@${revision}`;
}

/** What a watch of events has handed out. */
export class EventPosition {
  readonly #request: WatchEventsRequest;
  #bookmark: Bookmark | null;

  constructor(request: MessageInitShape<typeof WatchEventsRequestSchema>, bookmark: Bookmark | null) {
    this.#request = create(WatchEventsRequestSchema, request);
    this.#bookmark = bookmark;
  }

  /** After the last event that was handed out; null before the first message. */
  get bookmark(): Bookmark | null {
    return this.#bookmark;
  }

  /** The request that goes on from here. */
  nextRequest(): WatchEventsRequest {
    if (this.#bookmark === null) return this.#request;
    const { token, revision } = this.#bookmark;
    const start =
      token === ""
        ? ({ case: "afterRevision", value: revision } as const)
        : ({ case: "resumeToken", value: token } as const);
    return { ...this.#request, start };
  }

  /** The events of a message that have not been handed out. */
  unseen({ events }: WatchEventsResponse): readonly Event[] {
    const seen = this.#bookmark?.revision ?? 0n;
    return events.filter(({ revision }) => revision > seen);
  }

  /** The event is about to be handed out. */
  passed({ revision }: Event): void {
    this.#bookmark = { token: this.#bookmark?.token ?? "", revision };
  }

  /** Every event of the message was handed out, and the next is asked for. */
  completed({ resumeToken, revision }: WatchEventsResponse): void {
    const seen = this.#bookmark?.revision ?? 0n;
    // The first message of a watch stands for where it begins, which may be before what was handed out.
    this.#bookmark = { token: resumeToken, revision: revision > seen ? revision : seen };
  }
}
