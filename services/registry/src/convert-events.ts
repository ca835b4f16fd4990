import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ListEventsRequest, WatchEventsRequest } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { WatchNodesRequest } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { EVENT_TYPES, type EventType, isEventType } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { ReadEventsOptions } from "@rollcall/store";
import { pageSize } from "./convert.ts";
import type { EventFilter } from "./watch/event-hub.ts";
import { invalidResumeToken, LAST_REVISION, parseResumeToken } from "./watch/resume-token.ts";
import type { WatchStart } from "./watch/watch-events.ts";
import type { NodeWatchStart } from "./watch/watch-nodes.ts";

/** A parsed ListEvents request. */
export interface EventListing {
  readonly filter: Omit<ReadEventsOptions, "after" | "limit">;
  /** Maximum number of events per page. */
  readonly limit: number;
  /** The revision after which the first page starts. */
  readonly firstAfter: bigint;
  /** Identifies the filter and this history of the log, for page tokens. */
  readonly name: string;
}

/** Parse a ListEvents request. Throws INVALID_REQUEST for an unknown type. */
export function parseEventListing(request: ListEventsRequest, logId: string): EventListing {
  const filter = parseEventFilter(request);
  const times = parseTimes(request);
  // biome-ignore lint/complexity/useMathMinMax: Math.min() takes no bigints.
  const firstAfter = request.afterRevision > LAST_REVISION ? LAST_REVISION : request.afterRevision;
  const { types = [], excludeTypes = [], subject = "", actor = "" } = filter;
  return {
    filter: { ...filter, ...times },
    limit: pageSize(request.pageSize),
    firstAfter,
    name: JSON.stringify([
      "events",
      logId,
      types,
      excludeTypes,
      subject,
      actor,
      times.fromMs ?? null,
      times.untilMs ?? null,
      String(firstAfter),
    ]),
  };
}

/** Parse which events are selected. Throws INVALID_REQUEST for an unknown type. */
export function parseEventFilter(
  request: Pick<ListEventsRequest, "types" | "excludeTypes" | "subject" | "actor">,
): EventFilter {
  const { subject, actor } = request;
  const types = parseEventTypes(request.types, "types");
  const excludeTypes = parseEventTypes(request.excludeTypes, "exclude_types");
  return {
    ...(types.length > 0 ? { types } : {}),
    ...(excludeTypes.length > 0 ? { excludeTypes } : {}),
    ...(subject === "" ? {} : { subject }),
    ...(actor === "" ? {} : { actor }),
  };
}

/** Parse where a watch starts. Throws INVALID_RESUME_TOKEN. */
export function parseWatchStart(start: WatchEventsRequest["start"], logId: string): WatchStart {
  switch (start.case) {
    case undefined:
      return { kind: "now" };
    case "fromBeginning":
      return { kind: "beginning" };
    case "afterRevision":
      return { kind: "after", revision: checkRevision(start.value), logId };
    case "resumeToken": {
      const point = parseResumeToken(start.value);
      if (point.kind === "snapshot") {
        throw invalidResumeToken("this is a resume token of WatchNodes");
      }
      return { kind: "after", revision: checkRevision(point.revision), logId: point.logId };
    }
  }
}

/** Parse where a watch of nodes starts. Throws INVALID_RESUME_TOKEN. */
export function parseNodeWatchStart(start: WatchNodesRequest["start"], logId: string): NodeWatchStart {
  switch (start.case) {
    case undefined:
      return { kind: "snapshot" };
    case "afterRevision":
      return { kind: "after", revision: checkRevision(start.value), logId };
    case "resumeToken": {
      const point = parseResumeToken(start.value);
      return point.kind === "snapshot"
        ? { kind: "snapshot" }
        : { kind: "after", revision: checkRevision(point.revision), logId: point.logId };
    }
  }
}

/** Check that the store could hold a revision. Throws INVALID_RESUME_TOKEN. */
function checkRevision(revision: bigint): bigint {
  if (revision <= LAST_REVISION) return revision;
  throw invalidResumeToken(`revision ${revision} is ahead of any log`, { revision: `${revision}` });
}

function parseTimes({ fromTime, untilTime }: ListEventsRequest) {
  return {
    ...(fromTime === undefined ? {} : { fromMs: timestampMs(fromTime) }),
    ...(untilTime === undefined ? {} : { untilMs: timestampMs(untilTime) }),
  };
}

function parseEventTypes(texts: readonly string[], field: string): readonly EventType[] {
  return [...new Set(texts)].sort().map((type) => parseEventType(type, field));
}

function parseEventType(type: string, field: string): EventType {
  if (isEventType(type)) return type;
  const description = `no event has the type "${type}"; the types are ${EVENT_TYPES.join(", ")}`;
  throw refuse("INVALID_REQUEST", description, { violations: [{ field, description }] });
}
