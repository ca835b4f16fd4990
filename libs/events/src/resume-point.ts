import type { EventRowPosition, EventStream } from "./event-stream.ts";

export interface StreamMemory {
  readonly created: string;
  readonly lastSequence: number;
}

/** The inputs for deciding where to resume. */
export interface ResumeFacts {
  /** All events up to this revision were acknowledged at some time. */
  readonly cursor: bigint;
  readonly logId: string;
  readonly stream: EventStream;
  /** The last message that this process published; null if it has not published yet. */
  readonly memory: StreamMemory | null;
  /** The newest event in the stream; null when there is none. */
  readonly lastEvent: EventRowPosition | null;
}

/**
 * Decide after which revision to resume: the cursor, or a lower revision when the stream has lost acknowledged events.
 * In that case, events that the stream still has are published again. A consumer that drops duplicates by id does not
 * see them twice.
 */
export function decideResumePoint({ cursor, logId, stream, memory, lastEvent }: ResumeFacts): bigint {
  // The cursor is above 0, but the stream never stored anything, so it has replaced an earlier stream. Publish
  // everything again.
  if (stream.lastSequence === 0) return 0n;
  const isReplaced = memory !== null && memory.created !== stream.created;
  if (memory !== null && !isReplaced && stream.lastSequence >= memory.lastSequence) return cursor;
  const isKnownLoss = memory !== null;
  // Use the last event as evidence only if no later message was consumed, purged, expired or deleted, because these are
  // not losses.
  const isTelling =
    stream.keepsMessages && lastEvent !== null && lastEvent.logId === logId && !isTailDeleted(stream, lastEvent);
  if (!isTelling) return isKnownLoss ? 0n : cursor;
  if (lastEvent.revision < cursor) return lastEvent.revision;
  // A stream with other publishers may have stored this event after it lost earlier ones, so start again. A stream with
  // only Rollcall's events accepts no event after a gap.
  return isKnownLoss && !stream.isExclusive ? 0n : cursor;
}

/**
 * Whether messages after the last event were deleted. Deleting messages never lowers a stream's last sequence, but
 * losing its files does.
 */
function isTailDeleted(stream: EventStream, lastEvent: EventRowPosition): boolean {
  return stream.isExclusive && lastEvent.sequence < stream.lastSequence;
}
