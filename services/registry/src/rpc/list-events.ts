import type { MethodImpl } from "@connectrpc/connect";
import { EventSchema, type EventService, ListEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { noteRevision } from "@rollcall/rpc";
import { compactedRevision, readEvents } from "@rollcall/store";
import { eventToProto, readPage, readRows } from "@rollcall/wire";
import { parseEventListing } from "../convert-events.ts";
import type { RegistryServices } from "../registry-services.ts";
import { formatResumeToken, revisionCompacted } from "../watch/resume-token.ts";

/** Return a page of the event log. */
export function listEvents({ store, pageTokens }: RegistryServices): MethodImpl<typeof EventService.method.listEvents> {
  return async (request, context) => {
    const { filter, limit, firstAfter, name } = parseEventListing(request, store.logId());
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const cursor = pageTokens.open(name, request.pageToken) as string | null;
    const first = cursor === null ? firstAfter : BigInt(cursor);
    let through = first;
    const rows = readRows({
      limit,
      from: first,
      read: async (after, count) => {
        const batch = await readEvents(store.db, { ...filter, limit: count, after });
        through = batch.through;
        return batch.events;
      },
      cursorOf: ({ revision }) => revision,
    });
    const page = await readPage(context, {
      ...{ rows, limit, item: EventSchema, toMessage: eventToProto },
    });
    // Read this after the events, so that it includes revisions that were compacted before or during that read. If
    // `first` is 0, the request accepts whatever is left.
    const compacted = await compactedRevision(store.db);
    if (first > 0n && first < compacted) throw revisionCompacted(compacted, "compacted");
    const revision = page.next?.revision ?? through;
    noteRevision(context, revision);
    const resume = { kind: "position", logId: store.logId(), revision } as const;
    return page.answer(ListEventsResponseSchema, "events", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(name, String(revision)),
      resumeToken: formatResumeToken(resume),
      revision,
    });
  };
}
