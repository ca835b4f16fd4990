import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type WatchEventsResponse, WatchEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";

type Init = MessageInitShape<typeof WatchEventsResponseSchema>;

/**
 * Makes messages that many watchers send in the same form, each encoded once: the bytes travel as unknown fields, which
 * the encoder copies as they are. Only for binary formats: JSON has no unknown fields.
 */
export class EncodeOnce {
  #key = "";
  #message: WatchEventsResponse | null = null;

  /**
   * The message of a key; `make` is asked unless it is that of the call before. Watchers of one round ask for the same.
   */
  message(key: string, make: () => Init): WatchEventsResponse {
    if (this.#message === null || this.#key !== key) {
      this.#message = encoded(make());
      this.#key = key;
    }
    return this.#message;
  }
}

function encoded(init: Init): WatchEventsResponse {
  const bytes = toBinary(WatchEventsResponseSchema, create(WatchEventsResponseSchema, init));
  const message = create(WatchEventsResponseSchema);
  const [tag] = bytes;
  if (tag === undefined) return message;
  // Numbers of fields below 16 have a tag of one byte. All that follows it counts as its value, further fields
  // included.
  message.$unknown = [{ no: tag >>> 3, wireType: tag & 7, data: bytes.subarray(1) }];
  return message;
}
