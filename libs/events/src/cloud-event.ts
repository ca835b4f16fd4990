/** Plain data as JSON has it. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** An event of the record's log, on its way outward. */
export interface OutwardEvent {
  /** Unique; consumers deduplicate by it. */
  readonly id: string;
  /** Position in the log. */
  readonly revision: bigint;
  /** Wall time of the change. */
  readonly timeMs: number;
  /** What happened, for example "node.health.changed". */
  readonly type: string;
  /** What it happened to: the id of a node, or of whatever else the event is about. */
  readonly subject: string;
  readonly actor: string;
  /** For machines, SCREAMING_SNAKE. */
  readonly reason: string;
  /** For people; may be empty. */
  readonly message: string;
  /** What changed, as it was; null when there was nothing. */
  readonly before: JsonValue;
  /** The same, as it is now; null when it is gone. */
  readonly after: JsonValue;
  /** The log that the revision belongs to: revisions of two logs cannot be compared. */
  readonly logId: string;
  readonly clusterId: string;
}

/** An event as consumers read it: CloudEvents 1.0 with the extensions `revision` and `logid`. */
export interface CloudEvent {
  readonly specversion: "1.0";
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject?: string;
  /** RFC 3339, UTC. */
  readonly time: string;
  readonly datacontenttype: "application/json";
  /** Decimal text, because revisions outgrow the integers that CloudEvents attributes can hold. */
  readonly revision: string;
  readonly logid: string;
  readonly data: CloudEventData;
}

/** The data of an event. */
export interface CloudEventData {
  readonly actor: string;
  readonly reason: string;
  readonly message?: string;
  readonly before?: JsonValue;
  readonly after?: JsonValue;
  /** Members that were left out because the event would be larger than NATS takes; the record has them. */
  readonly omitted?: readonly OmittedMember[];
}

/** What an event can do without. */
export type OmittedMember = "message" | "before" | "after";

/** The media type of an encoded event. */
export const CLOUD_EVENT_MEDIA_TYPE = "application/cloudevents+json";

/** Where an event of a log stands. */
export interface EventPosition {
  readonly revision: bigint;
  readonly logId: string;
}

/** Make the CloudEvent of an event. */
export function toCloudEvent(event: OutwardEvent, omitted: readonly OmittedMember[] = []): CloudEvent {
  const { message, before, after } = event;
  return {
    specversion: "1.0",
    id: event.id,
    source: `/rollcall/${encodeURIComponent(event.clusterId)}`,
    type: `io.rollcall.${event.type}`,
    // An attribute that is present must not be empty.
    ...(event.subject === "" ? {} : { subject: event.subject }),
    time: new Date(event.timeMs).toISOString(),
    datacontenttype: "application/json",
    revision: event.revision.toString(),
    logid: event.logId,
    data: {
      actor: event.actor,
      reason: event.reason,
      ...(omitted.includes("message") ? {} : { message }),
      ...(omitted.includes("before") ? {} : { before }),
      ...(omitted.includes("after") ? {} : { after }),
      ...(omitted.length === 0 ? {} : { omitted }),
    },
  };
}

const OMISSIONS: readonly (readonly OmittedMember[])[] = [[], ["before", "after"], ["message", "before", "after"]];

/**
 * Encode an event in CloudEvents' structured JSON mode. One that is larger than `limitBytes` loses before and after,
 * then its message: an event that no server takes would hold up all that follow. Nothing else can be left out, so the
 * answer may still be larger.
 */
export function encodeCloudEvent(event: OutwardEvent, limitBytes = Number.POSITIVE_INFINITY): Uint8Array {
  let encoded = new Uint8Array();
  for (const omitted of OMISSIONS) {
    encoded = Buffer.from(JSON.stringify(toCloudEvent(event, omitted)));
    if (encoded.length <= limitBytes) break;
  }
  return encoded;
}

/** Read where an encoded event stands; null for anything else than an event of Rollcall. */
export function readEventPosition(encoded: Uint8Array): EventPosition | null {
  try {
    const { revision, logid }: Partial<CloudEvent> = JSON.parse(Buffer.from(encoded).toString());
    if (typeof revision !== "string" || typeof logid !== "string") return null;
    return /^\d+$/.test(revision) ? { revision: BigInt(revision), logId: logid } : null;
  } catch {
    // A message of another publisher: it has no position in a log of ours.
    return null;
  }
}
