import type { MethodImpl } from "@connectrpc/connect";
import type { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { isBinaryCall } from "@rollcall/wire";
import { parseEventFilter, parseWatchStart } from "../convert-events.ts";
import type { RegistryServices } from "../registry-services.ts";
import { OWN_MESSAGES, SharedMessages } from "../watch/event-messages.ts";
import { EventStream } from "../watch/watch-events.ts";

/** Send events as they are committed. */
export function watchEvents({
  store,
  clock,
  watches,
}: RegistryServices): MethodImpl<typeof EventService.method.watchEvents> {
  const { events: hub, limits } = watches;
  const shared = new SharedMessages();
  return (request, { signal, requestHeader }) => {
    const filter = parseEventFilter(request);
    const start = parseWatchStart(request.start, store.logId());
    const isShared = isBinaryCall(requestHeader) && Object.keys(filter).length === 0;
    const messages = isShared ? shared : OWN_MESSAGES;
    return new EventStream({ store, hub, clock, limits, filter, start, signal, messages });
  };
}
