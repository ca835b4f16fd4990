import type { Store } from "@rollcall/store";

/** A store whose session openings are meddled with after they were committed, before their answer arrives. */
export interface MeddledStore {
  readonly store: Store;
  /** Do something after the next commit of an opening, once. What it throws is what the caller sees instead of the answer. */
  afterCommit(meddle: () => Promise<void>): void;
}

/** The error of a connection that broke while the answer was on its way. */
export const LOST_ANSWER = Object.assign(new Error("Connection terminated unexpectedly"), {
  code: "ECONNRESET",
});

export function meddle(store: Store): MeddledStore {
  let next: (() => Promise<void>) | null = null;
  const change: Store["change"] = async (work) => {
    const answer = await store.change(work);
    if (!isOpening(answer.result)) return answer;
    const now = next;
    next = null;
    await now?.();
    return answer;
  };
  const meddled = new Proxy(store, {
    get: (target, name) => {
      if (name === "change") return change;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return {
    store: meddled,
    afterCommit: (work) => {
      next = work;
    },
  };
}

/** Adoptions and transitions are changes too, and come when they come. */
function isOpening(result: unknown): boolean {
  return Array.isArray(result) && result.some((it) => typeof it === "object" && "outcome" in it);
}
