import {
  type AllowedReason,
  type BrakeChange,
  type BrakeMarks,
  type BrakeMode,
  type BrakeReading,
  type BrakeRelease,
  type BrakeRow,
  brakeCountsText,
  brakeEvent,
  isHeldByFreeze,
  type NewEvent,
  reactionsAllowedEvent,
  replicaActor,
  toldCounts,
} from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import {
  type AllowedReaction,
  allowReactions,
  forgetBrakes,
  holdBrakeLease,
  listBrakes,
  lossBefore,
  type ReservedStore,
  readBrake,
  saveBrake,
  saveFollowed,
  type Tx,
} from "@rollcall/store";

/** A released reaction, and why it was released. */
export interface ReleasedReaction extends AllowedReaction {
  readonly reason: AllowedReason;
}

/**
 * The store's methods for the brake. None releases what an operator has frozen, even after the last read. Each call is
 * one transaction. Writes throw, and write nothing, when another process holds the brake's lease.
 */
export interface BrakeStore {
  /** List all brakes. */
  list(): Promise<readonly BrakeRow[]>;
  /** The number of the newest loss older than `ms` milliseconds; 0 if there is none. */
  lossBefore(ms: number): Promise<number>;
  /** Everything that brake decisions depend on, in one snapshot. */
  read(marks: BrakeMarks): Promise<BrakeReading>;
  saveChanges(changes: readonly BrakeChange[]): Promise<void>;
  /** Delete the rows of brakes that are in the default state. */
  forget(groups: readonly string[]): Promise<void>;
  /** Release reactions that are still pending. Returns the released ones. */
  release(releases: readonly BrakeRelease[]): Promise<readonly ReleasedReaction[]>;
  /** Release what an operator ordered. Returns the number of released reactions. */
  releaseOrdered(
    release: { readonly group: string; readonly most: number; readonly upTo: number },
    order: BrakeRow,
  ): Promise<number>;
  saveFollowed(order: BrakeRow): Promise<void>;
}

const REASONS = { NORMAL: "NO_STORM", PARTIAL: "BRAKE_PACED" } as const;
const STRICTNESS: Readonly<Record<BrakeMode, number>> = { NORMAL: 0, PARTIAL: 1, FULL: 2 };

/** The brake's store, on Postgres, for one process. */
export function createBrakeStore(options: {
  readonly store: ReservedStore;
  readonly instance: string;
  readonly log: Logger;
}): BrakeStore {
  const { store, instance, log } = options;
  const actor = replicaActor(instance);
  const change = async <T>(
    work: (tx: Tx) => Promise<{ readonly result: T; readonly events: readonly NewEvent[] }>,
  ): Promise<T> => {
    const { result } = await store.change(async (tx) => {
      // Check the lease again, because a process that was paused in the middle of a decision may resume while
      // another process decides.
      if (!(await holdBrakeLease(tx, instance))) throw new Error("another process holds the brake's lease");
      return work(tx);
    });
    return result;
  };
  const write = (work: (tx: Tx) => Promise<void>) => change(async (tx) => ({ result: await work(tx), events: [] }));
  return {
    list: () => listBrakes(store.db),
    lossBefore: (ms) => lossBefore(store.db, ms),
    read: (marks) => readBrake(store.db, marks),
    forget: (groups) => write((tx) => forgetBrakes(tx, groups)),
    saveChanges: async (changes) => {
      await change(async (tx) => {
        for (const it of changes) await saveBrake(tx, it);
        return { result: null, events: changes.filter(isShown).map((it) => eventOf(it, actor)) };
      });
      for (const it of changes) logChange(log, it);
    },
    release: (releases) =>
      change(async (tx) => {
        const brakes = new Map(releases.map(({ group, brake }) => [group, brake]));
        const rows = await listBrakes(tx);
        const free = releases.filter(({ group }) => !isHeldByFreeze(rows, group));
        const allowed = (await allowReactions(tx, free)).map((it) => {
          const brake = brakes.get(it.group) ?? "NORMAL";
          return { ...it, brake, reason: REASONS[brake] };
        });
        const events = allowed.map(({ nodeId: subject, ...facts }) =>
          reactionsAllowedEvent({ ...facts, subject, actor, message: "" }),
        );
        return { result: allowed, events };
      }),
    releaseOrdered: (release, { orderedBy, orderReason: message }) =>
      change(async (tx) => {
        const isHeld = isHeldByFreeze(await listBrakes(tx), release.group);
        const allowed = isHeld ? [] : await allowReactions(tx, [release]);
        const by = {
          actor: orderedBy,
          message,
          brake: "NORMAL",
          reason: "OPERATOR_RELEASED",
        } as const;
        const events = allowed.map(({ nodeId: subject, ...facts }) =>
          reactionsAllowedEvent({ ...facts, ...by, subject }),
        );
        return { result: allowed.length, events };
      }),
    saveFollowed: (order) => write((tx) => saveFollowed(tx, order)),
  };
}

function isShown({ isShown }: BrakeChange): boolean {
  return isShown;
}

function eventOf({ order, ...change }: BrakeChange, self: string): NewEvent {
  if (order !== null) {
    const { orderedBy: actor, orderReason: message } = order;
    return brakeEvent({ ...change, reason: "OPERATOR_RELEASED", actor, message });
  }
  const reason = STRICTNESS[change.after] > STRICTNESS[change.before] ? "MASS_LOSS" : "RECOVERED";
  return brakeEvent({ ...change, reason, actor: self, message: brakeCountsText(change.counts) });
}

function logChange(log: Logger, { group, before, after, counts }: BrakeChange): void {
  if (before === after) return;
  const fields = { group, before, after, ...toldCounts(counts) };
  if (after === "NORMAL") log.info(fields, "brake lifted");
  else log.warn(fields, "brake set");
}
