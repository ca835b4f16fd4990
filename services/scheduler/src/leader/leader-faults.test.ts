import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { readAllocations, readLiveExecutions, type WorkCommit, type WorkCommitted } from "@rollcall/store";
import { addWorkNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { failOnceAtEachCall, type Ports } from "@rollcall/testkit/faults";
import { BareLeader, saveJob } from "../testing/bare-leader.ts";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { allowReaction, serviceOf } from "../testing/job-specs.ts";
import { createPostgresRecord, type LeaderStore } from "./leader-store.ts";

/** The tables to empty before each scenario. */
const TABLES = ["execution_observations", "executions", "node_allocations", "job_versions", "jobs", "nodes"] as const;
const UNLIMITED = { jobs: null, executions: null, millicores: null };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await BareLeader.takeLease(database.store);
});
beforeEach(() => empty());
afterAll(() => database.drop());

async function empty(): Promise<void> {
  const { db } = database.store;
  for (const table of TABLES) await db.deleteFrom(table).execute();
}

const record = () => createPostgresRecord(database.store.reserved, UNLIMITED);

/** Place a job with four replicas on two nodes, and lose one of them. */
async function placeAndLose(ports: Ports, except: readonly (keyof LeaderStore)[]): Promise<void> {
  const { store } = database;
  await empty();
  for (const id of ["n1", "n2"]) await addWorkNode(store, id);
  await saveJob(store, serviceOf("web", 4));
  const leader = new BareLeader(ports.wrap("record", record(), { sync: ["readNodes"], except }));
  const workers = new FakeWorkers(store);
  const leading = ports.attempt(() => leader.lead());
  await leader.tick();
  await workers.work(["n1", "n2"]);
  await leader.tick();
  const placed = await readLiveExecutions(store.db, { after: "", limit: 100 });
  expect(placed.map(({ execution }) => execution.index).sort()).toEqual([0, 1, 2, 3]);
  const lost = placed.flatMap(({ execution }) => (execution.nodeId === "n2" ? [execution.id] : []));
  expect(lost).toHaveLength(2);
  workers.turnOff("n2");
  await allowReaction(store, "n2");
  await leader.tick({ type: "node.reactions.allowed", subject: "n2" });
  await workers.work(["n1"]);
  await leader.tick();
  leader.end();
  await leading;
  const rows = await store.db.selectFrom("executions").select(["id", "index", "node_id", "state", "desired"]).execute();
  // Four replicas and two replacements: nothing is placed twice, whichever call failed.
  expect(rows).toHaveLength(6);
  const running = rows.filter(({ id }) => !lost.includes(id));
  expect(running.map(({ index }) => index).sort()).toEqual([0, 1, 2, 3]);
  for (const each of running) expect(each).toMatchObject({ node_id: "n1", state: "LIVE", desired: "RUN" });
  expect((await readAllocations(store.db, ["n1"])).get("n1")).toMatchObject({ millicores: 1_000, executions: 4 });
}

describe("a leader", () => {
  it("should place and replace each replica once, although a call of the store failed once", async () => {
    const calls = await failOnceAtEachCall((ports) => placeAndLose(ports, []), { kinds: ["before"] });
    expect(calls.filter((call) => call === "record.commitWork")).toHaveLength(2);
  });

  it("should place and replace each replica once, although the response to a commit was lost", async () => {
    const others = Object.keys(record()).filter((name) => name !== "commitWork") as (keyof LeaderStore)[];
    const calls = await failOnceAtEachCall((ports) => placeAndLose(ports, others), { kinds: ["after"] });
    expect(calls).toEqual(["record.commitWork", "record.commitWork"]);
  });

  it("should plan less after each conflict, and as much as before when there are no more", async () => {
    const { store } = database;
    await addWorkNode(store, "n1", { millicores: 1_000_000 });
    await saveJob(store, serviceOf("web", 400));
    const sizes: number[] = [];
    let conflicts = 5;
    const real = record();
    const commitWork = async (commit: WorkCommit): Promise<WorkCommitted> => {
      sizes.push(commit.plan.executions.length);
      conflicts -= 1;
      return conflicts < 0 ? real.commitWork(commit) : { outcome: "STALE", nodeIds: ["n1"], jobs: ["web"] };
    };
    const leader = new BareLeader({ ...real, commitWork });
    const leading = leader.lead();
    while (sizes.slice(5).reduce((sum, size) => sum + size, 0) < 400) await leader.tick();
    leader.end();
    await leading;
    expect(sizes.slice(0, 6)).toEqual([400, 250, 62, 15, 3, 1]);
    expect(Math.max(...sizes.slice(6))).toBeGreaterThanOrEqual(32);
    expect(await readLiveExecutions(store.db, { after: "", limit: 1_000 })).toHaveLength(400);
  });
});
