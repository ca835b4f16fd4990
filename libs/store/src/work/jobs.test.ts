import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MOST_JOB_VERSIONS } from "@rollcall/domain";
import { addNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import {
  countOpenExecutions,
  deleteJob,
  getJob,
  getJobVersion,
  lockJob,
  lockJobs,
  type NewJobVersion,
  readJobVersionHeads,
  saveJobVersion,
} from "./jobs.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

async function save(part: Partial<NewJobVersion> & Pick<NewJobVersion, "name" | "version">): Promise<void> {
  const made = { type: "service", count: 1, spec: {}, actor: "", reason: "", specDigest: Buffer.alloc(32) } as const;
  await database.store.transaction((tx) => saveJobVersion(tx, { ...made, ...part }));
}

describe("saveJobVersion()", () => {
  it("should keep a limited number of versions, and the last one that became ready", async () => {
    const { db } = database.store;
    await save({ name: "many", version: 1 });
    await db.updateTable("jobs").set({ ready_version: 1 }).where("name", "=", "many").execute();
    for (let version = 2; version <= MOST_JOB_VERSIONS + 3; version += 1) await save({ name: "many", version });
    const kept = (await readJobVersionHeads(db, "many")).map(({ version }) => version).sort((a, b) => a - b);
    expect(kept).toHaveLength(MOST_JOB_VERSIONS + 1);
    expect(kept.slice(0, 3)).toEqual([1, 4, 5]);
  });

  it("should return which versions have the same specification, until another is submitted", async () => {
    const { db } = database.store;
    await save({ name: "copied", version: 1 });
    await save({ name: "copied", version: 2 });
    await save({ name: "copied", version: 3, revert: { origin: 1, sameVersions: [1], undone: 2 } });
    expect(await getJob(db, "copied")).toMatchObject({ sameVersions: [1], undone: 2 });
    expect(await getJobVersion(db, "copied", 3)).toMatchObject({ origin: 1, readyAtMs: null });
    expect(await getJobVersion(db, "copied", 4)).toBeNull();
    await save({ name: "copied", version: 4 });
    expect(await getJob(db, "copied")).toMatchObject({ sameVersions: [], undone: null });
  });
});

describe("deleteJob()", () => {
  it("should delete a job with its versions, its executions and their observations, and no other", async () => {
    const { store } = database;
    for (const name of ["gone", "stays"]) {
      await save({ name, version: 1 });
      const placed = { job: name, version: 1, index: 0, node_id: "n", generation: 1n, spec_digest: Buffer.alloc(32) };
      const grant = { ports: "{}", gpu_uuids: [], millicores: 0n, memory_bytes: 0n, disk_bytes: 0n };
      const rest = { previous: null, replaced_by: null, attempt: 0, lost_at: null, ended_at: null };
      const no = { order_kind: null, order_actor: null, order_message: null, reason: "", message: "" };
      const execution = { id: `${name}-1`, ...placed, ...grant, ...rest, ...no };
      await store.db
        .insertInto("executions")
        .values({ ...execution, desired: "RUN", state: "LIVE" })
        .execute();
      await store.db
        .insertInto("execution_observations")
        .values({
          ...{ execution_id: `${name}-1`, node_id: "n", epoch: 1n, report: 1n, observed: "READY" as const },
          ...{ started_at: null, ended_at: null, end_reason: null, exit_code: null, signal: null, ready_at: null },
          spec_digest: null,
        })
        .execute();
    }
    expect(await countOpenExecutions(store.db, "gone")).toBe(1);
    await store.transaction((tx) => deleteJob(tx, "gone"));
    expect(await getJob(store.db, "gone")).toBeNull();
    expect(await getJobVersion(store.db, "gone", 1)).toBeNull();
    expect(await countOpenExecutions(store.db, "gone")).toBe(0);
    const left = await store.db.selectFrom("execution_observations").select("execution_id").execute();
    expect(left).toEqual([{ execution_id: "stays-1" }]);
  });
});

describe("countOpenExecutions()", () => {
  it("should count what a rejected node may still run, until it reports otherwise or is deleted", async () => {
    const { store } = database;
    await save({ name: "rejected", version: 1 });
    for (const id of ["offline", "deleted"]) await addNode(store, id);
    await sql`
      insert into executions (id, job, version, index, node_id, desired, generation, spec_digest, millicores,
        memory_bytes, disk_bytes, state, holds, ended_at)
      select 'rejected-' || nr, 'rejected', 1, nr, node, desired, 1, ${Buffer.alloc(32)}, 0, 0, 0, 'FAILED', false,
        now()
      from (values (1, 'offline', 'STOP'), (2, 'offline', 'FORGET'), (3, 'deleted', 'STOP'), (4, 'offline', 'FORGET'))
        as e (nr, node, desired)`.execute(store.db);
    await sql`
      insert into execution_observations (execution_id, node_id, epoch, report, observed)
      values ('rejected-4', 'offline', 1, 1, 'RUNNING')`.execute(store.db);
    await store.db.deleteFrom("nodes").where("id", "=", "deleted").execute();
    const open = () => countOpenExecutions(store.db, "rejected");
    // Two executions count: the first was never confirmed, and the last still runs although its node should forget
    // it.
    expect(await open()).toBe(2);
    await sql`update execution_observations set missing = 2 where execution_id = 'rejected-4'`.execute(store.db);
    expect(await open()).toBe(1);
    await sql`
      insert into execution_observations (execution_id, node_id, epoch, report, observed)
      values ('rejected-1', 'offline', 1, 2, 'ENDED')`.execute(store.db);
    expect(await open()).toBe(0);
  });
});

describe("lockJobs()", () => {
  it("should lock several in a fixed order, in any order of names, including future jobs", async () => {
    const { store } = database;
    const names = Array.from({ length: 6 }, (_, index) => `job-${index}`);
    for (const name of names.slice(0, 4)) {
      const made = { name, type: "service", version: 1, count: 1, spec: {}, actor: "", reason: "" } as const;
      await store.transaction((tx) => saveJobVersion(tx, { ...made, specDigest: Buffer.alloc(32) }));
    }
    let within = 0;
    const lockings = Array.from({ length: 8 }, (_, index) =>
      store.transaction(async (tx) => {
        await lockJobs(tx, index % 2 === 0 ? names : [...names].reverse());
        within += 1;
        // This transaction has already locked the rows, so lockJob() does not wait for another transaction.
        for (const name of names) expect((await lockJob(tx, name)) === null).toBe(!names.slice(0, 4).includes(name));
        expect(within).toBe(1);
        within -= 1;
      }),
    );
    await expect(Promise.all(lockings)).resolves.toHaveLength(8);
  });
});
