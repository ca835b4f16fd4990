import {
  type AllowedReason,
  type BrakeChange,
  type BrakeMode,
  type BrakeRelease,
  type BrakeRow,
  brakeCountsText,
  brakeEvent,
  type NewEvent,
  reactionsAllowedEvent,
  toldCounts,
} from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import {
  type AllowedReaction,
  allowReactions,
  holdBrakeLease,
  type ReservedStore,
  saveBrake,
  saveFollowed,
  type Tx,
} from "@rollcall/store";

/** A reaction that was let go, and why. */
export interface ReleasedReaction extends AllowedReaction {
  readonly reason: AllowedReason;
}

/** Writes what was decided about the brake, each part as one transaction under the lease of the brake. */
export interface BrakeWriter {
  /** Write something that is no event. */
  write(work: (tx: Tx) => Promise<void>): Promise<void>;
  saveChanges(changes: readonly BrakeChange[]): Promise<void>;
  /** Let go what is still pending; what was. */
  release(releases: readonly BrakeRelease[]): Promise<readonly ReleasedReaction[]>;
  /** Let go what an operator ordered; how many. */
  releaseOrdered(
    release: { readonly group: string; readonly most: number; readonly upTo: number },
    order: BrakeRow,
  ): Promise<number>;
  saveFollowed(order: BrakeRow): Promise<void>;
}

const REASONS = { NORMAL: "NO_STORM", PARTIAL: "BRAKE_PACED" } as const;
const STRICTNESS: Readonly<Record<BrakeMode, number>> = { NORMAL: 0, PARTIAL: 1, FULL: 2 };

/**
 * Create the writer of one process's decisions. It throws when the lease is another's by now, and then nothing was
 * written.
 */
export function createBrakeWriter(options: {
  readonly store: ReservedStore;
  readonly instance: string;
  readonly log: Logger;
}): BrakeWriter {
  const { store, instance, log } = options;
  const actor = `replica:${instance}`;
  const change = async <T>(
    work: (tx: Tx) => Promise<{ readonly result: T; readonly events: readonly NewEvent[] }>,
  ): Promise<T> => {
    const { result } = await store.change(async (tx) => {
      // A process that was stopped may wake up in the middle of its decision, and find another one deciding.
      if (!(await holdBrakeLease(tx, instance))) throw new Error("the brake's lease is another's");
      return work(tx);
    });
    return result;
  };
  const write = (work: (tx: Tx) => Promise<void>) => change(async (tx) => ({ result: await work(tx), events: [] }));
  return {
    write,
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
        const allowed = (await allowReactions(tx, releases)).map((it) => {
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
        const allowed = await allowReactions(tx, [release]);
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
