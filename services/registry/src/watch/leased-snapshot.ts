import type { Clock } from "@rollcall/process";
import type { Limiter } from "@rollcall/rpc";
import { type CallStore, openSnapshot, type Snapshot } from "@rollcall/store";

/** A snapshot that is closed when its reader is idle for too long. */
export interface LeasedSnapshot {
  readonly revision: bigint;
  readonly compactedRevision: bigint;
  /** Read from the snapshot. Null if the snapshot was closed. */
  read<T>(reader: (db: Snapshot["db"]) => Promise<T>): Promise<T | null>;
  /**
   * Read from the snapshot piece by piece, as the caller requests pieces. If the snapshot was closed, the last piece
   * is null.
   */
  pieces<T>(reader: (db: Snapshot["db"]) => AsyncIterable<T>): AsyncGenerator<T | null>;
  close(): Promise<void>;
}

/** Open a snapshot once a slot is free. The snapshot is closed after `idleMs` without a read. */
export async function leaseSnapshot(options: {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly places: Limiter;
  readonly idleMs: number;
  readonly signal: AbortSignal;
}): Promise<LeasedSnapshot> {
  const { store, clock, places, idleMs, signal } = options;
  const leave = await places.enter(signal);
  const snapshot = await openSnapshot(store).catch((error: unknown) => {
    leave();
    throw error;
  });
  let isOpen = true;
  let rest = new AbortController();
  const close = async () => {
    isOpen = false;
    rest.abort();
    await snapshot.close();
    leave();
  };
  const takeBackLater = () => {
    rest = new AbortController();
    // Ignore the rejection, because the sleep rejects only when the next read starts in time.
    clock.sleep(idleMs, rest.signal).then(close, () => {});
  };
  takeBackLater();
  const read: LeasedSnapshot["read"] = async (reader) => {
    if (!isOpen) return null;
    rest.abort();
    const answer = await reader(snapshot.db);
    takeBackLater();
    return answer;
  };
  return {
    revision: snapshot.revision,
    compactedRevision: snapshot.compactedRevision,
    read,
    pieces: (reader) => piecesOf(read, reader),
    close,
  };
}

async function* piecesOf<T>(
  read: LeasedSnapshot["read"],
  reader: (db: Snapshot["db"]) => AsyncIterable<T>,
): AsyncGenerator<T | null> {
  let pieces: AsyncIterator<T> | null = null;
  for (;;) {
    const step = await read((db) => {
      pieces ??= reader(db)[Symbol.asyncIterator]();
      return pieces.next();
    });
    if (step?.done) return;
    yield step?.value ?? null;
    if (step === null) return;
  }
}
