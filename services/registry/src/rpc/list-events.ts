import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type EventService,
  ListEventsResponseSchema,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { compactedRevision, readEvents } from "@rollcall/store";
import { eventToProto } from "@rollcall/wire";
import { parseEventListing } from "../convert-events.ts";
import type { Deps } from "../deps.ts";
import { formatResumeToken } from "../watch/resume-token.ts";
import { revisionCompacted } from "../watch/watch-errors.ts";

/** Answer a page of the log. */
export function listEvents({
  store,
  pageTokens,
}: Deps): MethodImpl<typeof EventService.method.listEvents> {
  return async (request) => {
    const { filter, limit, firstAfter, name } = parseEventListing(request, store.logId());
    // The MAC says that the cursor was made below.
    const cursor = pageTokens.open(name, request.pageToken) as string | null;
    const after = cursor === null ? firstAfter : BigInt(cursor);
    const { events, through } = await readEvents(store.db, { ...filter, limit, after });
    // Asked after the read: what was deleted before it, or under it, is known by now. 0 asks for whatever is kept.
    const compacted = await compactedRevision(store.db);
    if (after > 0n && after < compacted) throw revisionCompacted(compacted, "compacted");
    const last = events.length < limit ? undefined : events.at(-1);
    const resume = { kind: "position", logId: store.logId(), revision: through } as const;
    return create(ListEventsResponseSchema, {
      events: events.map(eventToProto),
      nextPageToken: last === undefined ? "" : pageTokens.seal(name, String(last.revision)),
      resumeToken: formatResumeToken(resume),
      revision: through,
    });
  };
}
