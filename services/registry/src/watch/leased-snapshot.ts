import type { Clock } from "@rollcall/process";
import type { Limiter } from "@rollcall/rpc";
import { type CallStore, openSnapshot, type Snapshot } from "@rollcall/store";

/** A snapshot that is taken back when its reader is idle for too long. */
export interface LeasedSnapshot {
  readonly revision: bigint;
  readonly compactedRevision: bigint;
  /** Read something of it. Null when it has been taken back. */
  read<T>(reader: (db: Snapshot["db"]) => Promise<T>): Promise<T | null>;
  /**
   * Read something of it piece by piece, as its user asks for them. It ends with null when the snapshot has been taken
   * back.
   */
  pieces<T>(reader: (db: Snapshot["db"]) => AsyncIterable<T>): AsyncGenerator<T | null>;
  close(): Promise<void>;
}

/** Open a snapshot as soon as there is a place for one more. It is taken back after `idleMs` between two reads. */
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
    // It rejects when the next read begins in time.
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
