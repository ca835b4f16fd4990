import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Json } from "@rollcall/domain";
import { addNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { saveJobVersion } from "./jobs.ts";
import { readOwners, readOwnerUsage } from "./owner-usage.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of ["n1", "n2", "n3"]) await addNode(database.store, id);
});
afterAll(() => database.drop());

interface Version {
  readonly type?: "service" | "daemon";
  readonly count?: number;
  readonly millicores?: number;
  readonly node?: string;
  readonly autoRevert?: boolean;
  readonly revertOf?: number;
}

/** Submit the next version of an owner's only job, which has the owner's name. */
async function submit(name: string, version: number, rest: Version): Promise<void> {
  const { type = "service", count = 0, millicores = 0, node = "", autoRevert = false, revertOf } = rest;
  const spec: Json = {
    ...{ type: `JOB_TYPE_${type.toUpperCase()}`, count, resources: { millicores } },
    ...{ constraints: { node }, update: { autoRevert } },
  };
  const columns = { name, type, version, count, spec, actor: name, reason: "", specDigest: Buffer.alloc(32) };
  const revert = revertOf === undefined ? {} : { revert: { origin: revertOf, sameVersions: [revertOf], undone: null } };
  await database.store.transaction((tx) =>
    saveJobVersion(tx, { ...columns, millicores, isOneNode: node !== "", ...revert }),
  );
}

async function change(name: string, columns: { state?: "STOPPED"; count?: number; ready_version?: number }) {
  await database.store.db.updateTable("jobs").set(columns).where("name", "=", name).execute();
}

/** Make executions of a job hold resources. */
async function hold(name: string, count: number, millicores: number): Promise<void> {
  await sql`
    insert into executions (id, job, version, index, node_id, desired, generation, spec_digest, millicores,
      memory_bytes, disk_bytes, state, attempt)
    select ${name} || '-' || nr, ${name}, 1, nr, 'n1', 'RUN', 1, ${Buffer.alloc(32)}, ${millicores}, 0, 0, 'LIVE', 0
    from generate_series(1, ${count}) as nr`.execute(database.store.db);
}

async function usageOf(owner: string) {
  const { db } = database.store;
  const usage = await readOwnerUsage(db, owner);
  const rows = await readOwners(db, { after: "", limit: 100 });
  expect(rows.find((row) => row.owner === owner)).toEqual({ owner, ...usage });
  return usage;
}

describe("readOwnerUsage()", () => {
  it("should count placed executions, whatever the newest version requests, until they end", async () => {
    const held = { jobs: 1, executions: 2, millicores: 10_000 };
    await submit("shrunk", 1, { count: 2, millicores: 5_000 });
    await hold("shrunk", 2, 5_000);
    await submit("shrunk", 2, { count: 1, millicores: 1 });
    expect(await usageOf("shrunk")).toEqual(held);
    await change("shrunk", { state: "STOPPED" });
    expect(await usageOf("shrunk")).toEqual(held);
    await sql`update executions set holds = false where job = 'shrunk'`.execute(database.store.db);
    expect(await usageOf("shrunk")).toEqual({ jobs: 1, executions: 0, millicores: 0 });
  });

  it("should count what a halted update would place, until the newest version becomes ready", async () => {
    await submit("halting", 1, { count: 2, millicores: 5_000 });
    await change("halting", { ready_version: 1 });
    await submit("halting", 2, { count: 2, millicores: 1 });
    await change("halting", { count: 1_000 });
    expect(await usageOf("halting")).toEqual({ jobs: 1, executions: 1_000, millicores: 5_000_000 });
    await change("halting", { ready_version: 2 });
    expect(await usageOf("halting")).toEqual({ jobs: 1, executions: 1_000, millicores: 1_000 });
  });

  it("should count an earlier daemon on all nodes while the newest version names one", async () => {
    await submit("narrowed", 1, { type: "daemon", millicores: 100 });
    await change("narrowed", { ready_version: 1 });
    await submit("narrowed", 2, { type: "daemon", millicores: 10, node: "n1" });
    expect(await usageOf("narrowed")).toEqual({ jobs: 1, executions: 3, millicores: 300 });
  });

  it.each([
    ["its count", { count: 20, autoRevert: true }, { count: 1, autoRevert: true }, 20],
    ["its type", { count: 20 }, { type: "daemon", node: "n1", autoRevert: true }, 20],
    ["no count without such a policy", { count: 20 }, { count: 1 }, 1],
    ["no other type without such a policy", { type: "daemon" }, { count: 1 }, 1],
    ["nothing more once it has done so", { count: 20 }, { count: 1, autoRevert: true, revertOf: 1 }, 1],
  ] as const)("should count what an automatic revert restores: %s", async (name, first, second, executions) => {
    await submit(name, 1, first);
    await change(name, { ready_version: 1 });
    await submit(name, 2, second);
    expect(await usageOf(name)).toEqual({ jobs: 1, executions, millicores: 0 });
  });
});
