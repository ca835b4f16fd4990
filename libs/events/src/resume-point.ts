import type { EventStream, StoredEventPosition } from "./event-stream.ts";

/** The last message that a stream acknowledged. */
export interface StreamMemory {
  readonly created: string;
  readonly lastSequence: number;
}

/** What decides where to go on. */
export interface ResumeFacts {
  /** Everything up to this revision has been acknowledged once. */
  readonly cursor: bigint;
  readonly logId: string;
  readonly stream: EventStream;
  /** Null in a process that has not published yet. */
  readonly memory: StreamMemory | null;
  /** The newest event in the stream; null when it has none. */
  readonly lastEvent: StoredEventPosition | null;
}

/**
 * Decide the revision behind which to go on: the cursor, or less when the stream has lost what it acknowledged. Events
 * that it still has are then published again, which consumers that deduplicate by id do not see.
 */
export function decideResumePoint({ cursor, logId, stream, memory, lastEvent }: ResumeFacts): bigint {
  // It never took anything: it is new, in place of the one that acknowledged the events up to the cursor.
  if (stream.lastSequence === 0) return 0n;
  const isReplaced = memory !== null && memory.created !== stream.created;
  if (memory !== null && !isReplaced && stream.lastSequence >= memory.lastSequence) return cursor;
  const isKnownLoss = memory !== null;
  // Messages that were read, purged or have aged are gone as they should be: the rest then says nothing about a loss.
  const isTelling =
    stream.keepsMessages && lastEvent !== null && lastEvent.logId === logId && !isTailDeleted(stream, lastEvent);
  if (!isTelling) return isKnownLoss ? 0n : cursor;
  if (lastEvent.revision < cursor) return lastEvent.revision;
  // A stream of ours alone takes nothing after a gap. Another may have taken this event after it had lost those before.
  return isKnownLoss && !stream.isExclusive ? 0n : cursor;
}

/** The sequences of a stream never fall when messages are deleted; they do when its files have lost them. */
function isTailDeleted(stream: EventStream, lastEvent: StoredEventPosition): boolean {
  return stream.isExclusive && lastEvent.sequence < stream.lastSequence;
}
