import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { type Event, type EventService, WatchEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { StoredEvent } from "@rollcall/store";
import { eventToProto, isBinaryCall } from "@rollcall/wire";
import { parseEventFilter, parseWatchStart } from "../convert-events.ts";
import type { RegistryServices } from "../registry-services.ts";
import { EncodeOnce } from "../watch/encode-once.ts";
import { formatResumeToken } from "../watch/resume-token.ts";
import { watchEvents as watch } from "../watch/watch-events.ts";

/** Send events as they are committed. */
export function watchEvents({
  store,
  clock,
  watches,
}: RegistryServices): MethodImpl<typeof EventService.method.watchEvents> {
  // All watchers of the window share its events: each is converted once, whatever their number.
  const converted = new WeakMap<StoredEvent, Event>();
  const toProto = (event: StoredEvent): Event => {
    const known = converted.get(event);
    if (known !== undefined) return known;
    const made = eventToProto(event);
    converted.set(event, made);
    return made;
  };
  const encodeOnce = new EncodeOnce();
  return async function* (request, { signal, requestHeader }) {
    const isBinary = isBinaryCall(requestHeader);
    const filter = parseEventFilter(request);
    const start = parseWatchStart(request.start, store.logId());
    const { events: hub, limits } = watches;
    const messages = watch({ store, hub, clock, limits, filter, start, signal });
    for await (const { events, logId, revision } of messages) {
      const make = () => ({
        events: events.map(toProto),
        resumeToken: formatResumeToken({ kind: "position", logId, revision }),
        revision,
      });
      // Without a filter, first and last say what lies in between.
      const key = `${logId} ${events[0]?.revision} ${events.length} ${revision}`;
      const isShared = isBinary && Object.keys(filter).length === 0;
      yield isShared ? encodeOnce.message(key, make) : create(WatchEventsResponseSchema, make());
    }
  };
}
