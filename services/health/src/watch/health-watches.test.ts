import { describe, expect, it } from "@jest/globals";
import { StoreUnavailableError } from "@rollcall/errors";
import { type CountedResource, faultsAtLimit } from "@rollcall/testkit/limits";
import { ManualClock, settle } from "@rollcall/testkit/time";
import type { HealthWatchesOptions } from "./health-watch.ts";
import { HealthWatches, MOST_WATCHES } from "./health-watches.ts";

/** Watches whose store cannot be reached, so that nothing is shown. Counts the followers of the log. */
function watchesWithoutStore() {
  const clock = new ManualClock();
  let followers = 0;
  let failure: Error = new StoreUnavailableError("the store is away");
  const db = new Proxy(
    {},
    {
      get: () => {
        throw failure;
      },
    },
  );
  const follow = () => {
    followers += 1;
    const leave = () => {
      followers -= 1;
    };
    return { caughtUp: Promise.resolve(), caughtUpTo: async () => {}, position: 0n, leave };
  };
  const log = { debug: () => {} };
  const watches = new HealthWatches({
    store: { db },
    clock,
    log,
    feed: { follow },
  } as unknown as HealthWatchesOptions & {
    readonly feed: { readonly follow: typeof follow };
  });
  const fail = (error: Error) => {
    failure = error;
  };
  return { clock, watches, fail, held: () => watches.size + followers };
}

describe("watches of health", () => {
  it("should be limited, and hold nothing after they end in any way", async () => {
    const { watches, held } = watchesWithoutStore();
    const resource: CountedResource = {
      ...{ limit: MOST_WATCHES, reason: "OVERLOADED", held },
      begin: async () => {
        const reader = new AbortController();
        const watch = watches.watch({ nodeIds: ["n1"], includeSamples: false, signal: reader.signal });
        const first = watch.next();
        // A refusal comes at once. The first message takes longer.
        await Promise.race([first, settle()]);
        first.catch(() => {});
        const disconnect = async () => {
          reader.abort(new Error("gone"));
          await first.catch(() => {});
        };
        return {
          endings: {
            "a reader that disconnects": disconnect,
            "a reader that leaves and disconnects": async () => {
              const left = watch.return(undefined as never);
              await disconnect();
              await left.catch(() => {});
            },
          },
        };
      },
    };
    expect(await faultsAtLimit(resource)).toEqual([]);
  });

  it("should show that they are alive in each of a hundred silent intervals", async () => {
    const { clock, watches } = watchesWithoutStore();
    const reader = new AbortController();
    const sentAtMs: number[] = [];
    const reading = (async () => {
      for await (const mail of watches.watch({ nodeIds: ["n1"], includeSamples: false, signal: reader.signal })) {
        expect(mail.items).toEqual([]);
        sentAtMs.push(clock.nowMs());
      }
    })();
    await clock.pass(100 * 15_000);
    reader.abort(new Error("gone"));
    await expect(reading).rejects.toThrow("gone");
    expect(sentAtMs).toEqual(Array.from({ length: 100 }, (_, index) => (index + 1) * 15_000));
  });

  it("should hold nothing after following fails", async () => {
    const { watches, fail, held } = watchesWithoutStore();
    fail(new TypeError("a bug"));
    const watch = watches.watch({ nodeIds: ["n1"], includeSamples: false, signal: new AbortController().signal });
    await expect(watch.next()).rejects.toThrow("a bug");
    expect(held()).toBe(0);
  });
});
