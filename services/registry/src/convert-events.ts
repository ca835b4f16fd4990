import type { ListEventsRequest } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { EventType } from "@rollcall/domain";
import { refuse } from "@rollcall/runtime";
import type { ReadEventsOptions } from "@rollcall/store";
import { pageSize } from "./convert.ts";
import { checkTexts } from "./texts.ts";

// A record, so that a type that the domain adds and this list lacks does not compile.
const EVENT_TYPES: Readonly<Record<EventType, true>> = {
  "node.registered": true,
  "node.approved": true,
  "node.rejected": true,
  "node.deleted": true,
  "node.deregistered": true,
  "node.info.changed": true,
  "node.labels.changed": true,
  "node.connection.changed": true,
  "node.health.changed": true,
  "node.scheduling.changed": true,
};

/** Revisions are positive 64-bit numbers with a sign in the record; none is above this one. */
const LAST_REVISION = 2n ** 63n - 1n;

/** What a ListEvents request asks for. */
export interface EventListing {
  readonly filter: Pick<ReadEventsOptions, "types" | "subject">;
  /** Events of one page. */
  readonly limit: number;
  /** Where the first page begins. */
  readonly firstAfter: bigint;
  /** Names the filter and this history of the log, for page tokens. */
  readonly name: string;
}

/** Read a ListEvents request. Throws INVALID_REQUEST for a type that there is not. */
export function parseEventListing(request: ListEventsRequest, logId: string): EventListing {
  checkTexts({ subject: request.subject });
  const types = [...new Set(request.types)].sort();
  const { subject } = request;
  const firstAfter = request.afterRevision > LAST_REVISION ? LAST_REVISION : request.afterRevision;
  return {
    filter: {
      ...(types.length > 0 ? { types: types.map(parseEventType) } : {}),
      ...(subject === "" ? {} : { subject }),
    },
    limit: pageSize(request.pageSize),
    firstAfter,
    name: JSON.stringify(["events", logId, types, subject, String(firstAfter)]),
  };
}

function parseEventType(type: string): EventType {
  if (isEventType(type)) return type;
  const description = `no event has the type "${type}"; the types are ${Object.keys(EVENT_TYPES).join(", ")}`;
  throw refuse("INVALID_REQUEST", description, { violations: [{ field: "types", description }] });
}

function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_TYPES, type);
}
