import { StoreUnavailableError } from "@rollcall/errors";
import type { Store } from "@rollcall/store";

/** The changes that a replica makes in the store. */
export type MeddledChange = "opening" | "transition";

/** A store that interferes with changes between commit and result. */
export interface MeddledStore {
  readonly store: Store;
  /** Call `meddle` once, after the next commit of an opening or of transitions. Its error replaces the result. */
  afterCommit(meddle: () => Promise<void>, of?: MeddledChange): void;
  /** Whether transitions fail and are rolled back. */
  refuseTransitions(isRefusing: boolean): void;
}

/** The error of a connection that broke before the result arrived. */
export const LOST_ANSWER = new StoreUnavailableError("Connection terminated unexpectedly");

export function meddle(store: Store): MeddledStore {
  const next = new Map<MeddledChange | null, () => Promise<void>>();
  let isRefusing = false;
  const change: Store["change"] = async (work) => {
    const answer = await store.reserved.change(async (tx) => {
      const done = await work(tx);
      if (isRefusing && kindOf(done.result) === "transition") throw LOST_ANSWER;
      return done;
    });
    const kind = kindOf(answer.result);
    const now = next.get(kind);
    next.delete(kind);
    await now?.();
    return answer;
  };
  const meddled = { ...store, reserved: { ...store.reserved, change } };
  return {
    store: meddled,
    afterCommit: (work, of = "opening") => {
      next.set(of, work);
    },
    refuseTransitions: (refuse) => {
      isRefusing = refuse;
    },
  };
}

/**
 * The kind of change with this result; null for other changes, such as adoptions, which happen at unpredictable
 * times.
 */
function kindOf(result: unknown): MeddledChange | null {
  if (result instanceof Set) return "transition";
  const isOpening = Array.isArray(result) && result.some((it) => typeof it === "object" && "outcome" in it);
  return isOpening ? "opening" : null;
}
