import { createClient, createRouterTransport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { silentLogger } from "@rollcall/process";
import { addWorkNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { ManualClock, until } from "@rollcall/testkit/time";
import { Peers } from "../internal/peers.ts";
import type { HealthWatchesOptions } from "./health-watch.ts";
import { HealthWatches } from "./health-watches.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await addWorkNode(database.store, "n1", { replicaId: "owner" });
});
afterAll(() => database.drop());

/** How one call to the replica that owns the node goes. */
type Call = "answers, and ends" | "answers, and fails" | "fails" | "is not possible, because it is not listed";

/** A watch of a node whose owner is another replica. Each call to that replica goes as the test says. */
async function watchOf(callOf: (call: number) => Call) {
  const clock = new ManualClock();
  const ending = new AbortController();
  const held = new Set<AbortSignal>();
  let calls = 0;
  const transport = createRouterTransport(({ service }) => {
    service(HealthInternalService, {
      async *watchLiveNodes(_, { signal }) {
        held.add(signal);
        signal.addEventListener("abort", () => held.delete(signal), { once: true });
        const call = callOf(calls);
        calls += 1;
        if (call === "fails") throw new Error("the connection broke");
        yield { nodes: [{ nodeId: "n1", replicaId: `call ${calls}` }] };
        if (call === "answers, and fails") throw new Error("the connection broke");
      },
    });
  });
  const peers = new Peers({
    instance: "own",
    clock,
    list: async () => {
      const isListed = callOf(calls) !== "is not possible, because it is not listed";
      calls += isListed ? 0 : 1;
      const place = { agentEndpoint: "a:1", internalAddress: "a:2", queryEndpoint: "a:3", sessions: 1 };
      return isListed ? [{ instance: "owner", ...place }] : [];
    },
    connect: () => ({ client: createClient(HealthInternalService, transport), close: () => {} }),
  });
  const following = { caughtUp: Promise.resolve(), caughtUpTo: async () => {}, position: 0n, leave: () => {} };
  const options = { store: database.store, peers, clock, log: silentLogger, replica: { instance: "own" } };
  const watches = new HealthWatches({
    ...(options as unknown as HealthWatchesOptions),
    feed: { follow: () => following },
  });
  const shown: string[] = [];
  const reading = (async () => {
    const selection = { nodeIds: ["n1"], includeSamples: false, signal: ending.signal };
    for await (const { items } of watches.watch(selection)) for (const { replicaId } of items) shown.push(replicaId);
  })();
  reading.catch(() => {});
  return {
    clock,
    held,
    shown,
    calls: () => calls,
    end: async () => {
      ending.abort(new Error("gone"));
      await reading.catch(() => {});
    },
  };
}

describe("a watch of a node that another replica owns", () => {
  it.each(["answers, and ends", "answers, and fails", "fails", "is not possible, because it is not listed"] as const)(
    "should ask the owner again whenever a call %s",
    async (call) => {
      const { clock, shown, calls, end, held } = await watchOf((number) => (number < 3 ? call : "answers, and ends"));
      const isCalledAgain = async () => {
        await clock.pass(6_000);
        return calls() > 3 && shown.includes("call 4");
      };
      await until("a call after three", isCalledAgain, 20_000);
      await end();
      await until("the end of all calls", () => held.size === 0);
      expect(shown.filter((each) => each === "call 4")).toHaveLength(1);
    },
  );
});
