/** A JSON value. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** An event from the store's log that is to be published. */
export interface OutwardEvent {
  /** Unique; consumers use it to drop duplicates. */
  readonly id: string;
  /** Position in the log. */
  readonly revision: bigint;
  /** Wall-clock time of the change. */
  readonly timeMs: number;
  /** What happened, for example "node.health.changed". */
  readonly type: string;
  /** What the event is about, usually a node id. */
  readonly subject: string;
  readonly actor: string;
  /** For machines, SCREAMING_SNAKE. */
  readonly reason: string;
  /** The message for people; may be empty. */
  readonly message: string;
  /** The changed fields before the change; null when the subject did not exist. */
  readonly before: JsonValue;
  /** The changed fields after the change; null when the subject was deleted. */
  readonly after: JsonValue;
  /** The log that the revision belongs to. Revisions of different logs cannot be compared. */
  readonly logId: string;
  readonly clusterId: string;
}

/** An event as consumers receive it: CloudEvents 1.0 with the extensions `revision` and `logid`. */
export interface CloudEvent {
  readonly specversion: "1.0";
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject?: string;
  /** RFC 3339, UTC. */
  readonly time: string;
  readonly datacontenttype: "application/json";
  /** A decimal string, because revisions can exceed the integers that CloudEvents attributes allow. */
  readonly revision: string;
  readonly logid: string;
  readonly data: CloudEventData;
}

/** The `data` member of a CloudEvent. */
export interface CloudEventData {
  readonly actor: string;
  readonly reason: string;
  readonly message?: string;
  readonly before?: JsonValue;
  readonly after?: JsonValue;
  /**
   * Members that were omitted because the event would exceed the size limit of NATS. The store still has their values.
   */
  readonly omitted?: readonly OmittedMember[];
}

/** Members that can be omitted from an event. */
export type OmittedMember = "message" | "before" | "after";

/** The media type of an encoded event. */
export const CLOUD_EVENT_MEDIA_TYPE = "application/cloudevents+json";

/** The position of an event in a log. */
export interface EventPosition {
  readonly revision: bigint;
  readonly logId: string;
}

/** Convert an event to a CloudEvent. */
export function toCloudEvent(event: OutwardEvent, omitted: readonly OmittedMember[] = []): CloudEvent {
  const { message, before, after } = event;
  return {
    specversion: "1.0",
    id: event.id,
    source: `/rollcall/${encodeURIComponent(event.clusterId)}`,
    type: `io.rollcall.${event.type}`,
    // Omit an empty subject, because a CloudEvents attribute must not be empty.
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
 * Encode an event in CloudEvents structured JSON mode. An event larger than `limitBytes` loses `before` and `after`,
 * and if it is still too large, also `message`. Otherwise an event that no server accepts would block all later events.
 * Nothing else can be omitted, so the result can still be too large.
 */
export function encodeCloudEvent(event: OutwardEvent, limitBytes = Number.POSITIVE_INFINITY): Uint8Array {
  let encoded = new Uint8Array();
  for (const omitted of OMISSIONS) {
    encoded = Buffer.from(JSON.stringify(toCloudEvent(event, omitted)));
    if (encoded.length <= limitBytes) break;
  }
  return encoded;
}

/** Return the log position of an encoded event; null if the message is not a Rollcall event. */
export function readEventPosition(encoded: Uint8Array): EventPosition | null {
  try {
    const { revision, logid }: Partial<CloudEvent> = JSON.parse(Buffer.from(encoded).toString());
    if (typeof revision !== "string" || typeof logid !== "string") return null;
    return /^\d+$/.test(revision) ? { revision: BigInt(revision), logId: logid } : null;
  } catch {
    // Return null, because a message of another publisher has no position in Rollcall's log.
    return null;
  }
}
