import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, startTasks } from "@rollcall/process";
import { type EventRow, type ExecutionRow, type FollowOptions, saveJobVersion } from "@rollcall/store";
import { addWorkNode, createTestDatabase, storePort, type TestDatabase } from "@rollcall/testkit";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { ManualClock, until } from "@rollcall/testkit/time";
import { WorkHub } from "./work-hub.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  await addWorkNode(store, "n1");
  const spec = { name: "web", type: "service", version: 1, count: 1, spec: {}, actor: "a", reason: "" } as const;
  await store.transaction((tx) => saveJobVersion(tx, { ...spec, specDigest: Buffer.alloc(32, 7) }));
});
afterAll(() => database.drop());

/** Store an execution on the node. */
async function addExecution(id: string): Promise<void> {
  const of = { job: "web", version: 1, index: 0, node_id: "n1", generation: 1n, spec_digest: Buffer.alloc(32, 7) };
  const granted = { millicores: 0n, memory_bytes: 0n, disk_bytes: 0n, ports: "{}", gpu_uuids: [], holds: false };
  const others = { previous: null, replaced_by: null, attempt: 0, reason: "", message: "", lost_at: null };
  const order = { order_kind: null, order_actor: null, order_message: null };
  await database.store.db
    .insertInto("executions")
    .values({ id, state: "LIVE", desired: "RUN", ...of, ...granted, ...others, ...order, ended_at: null })
    .execute();
}

describe("WorkHub", () => {
  it("should report changed executions and those of a node whose health changed although a read failed once", async () => {
    let run = 0;
    const calls = await failOnceAtEachCall(
      async (ports) => {
        run += 1;
        const [before, changed] = [`before-${run}`, `changed-${run}`];
        await addExecution(before);
        const clock = new ManualClock();
        let deliver: FollowOptions["deliver"] = () => {};
        const feed = {
          start: async () => {},
          follow: (options: FollowOptions) => {
            deliver = options.deliver;
            return { caughtUp: Promise.resolve(), caughtUpTo: async () => {}, position: 0n, leave: () => {} };
          },
        };
        const { store } = database;
        const reserved = storePort(ports, store.reserved);
        const hub = new WorkHub({
          ...({ store: { ...store, reserved }, feed } as unknown as ConstructorParameters<typeof WorkHub>[0]),
          ...{ clock, signals: { follow: () => () => {} } as never },
        });
        const seen: string[] = [];
        const listener = (rows: readonly ExecutionRow[]) => seen.push(...rows.map(({ execution }) => execution.id));
        const leave = await hub.join(listener, new AbortController().signal);
        await addExecution(changed);
        deliver([{ subject: "n1" } as EventRow], 1n);
        const tasks = startTasks([hub.task], { log: silentLogger, clock, retry: { baseMs: 1, maxMs: 1 } });
        await until("both executions", () => {
          // Enough for a retry, and too little for the next regular read.
          clock.advance(1);
          return seen.includes(before) && seen.includes(changed);
        });
        leave();
        await tasks.close();
      },
      { kinds: ["before"] },
    );
    expect(new Set(calls)).toEqual(new Set(["statements.run"]));
  });
});
