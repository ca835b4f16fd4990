import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FIRST_UNKNOWN_OF_NODE, MOST_UNKNOWN, MOST_UNKNOWN_OF_NODE } from "@rollcall/domain";
import { addWorkNode, connectNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import { sql } from "kysely";
import type { Store } from "../database/store.ts";
import { changePosition } from "./changes.ts";
import { getExecutions } from "./executions.ts";
import {
  type NodeReport,
  type ReportedExecution,
  readObservedIds,
  readUnknownExecutions,
  saveObservations,
} from "./observations.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(() => database.drop());

async function execution(id: string, nodeId: string, desired = "RUN"): Promise<void> {
  await sql`
    insert into executions (id, job, version, index, node_id, desired, generation, spec_digest, millicores,
      memory_bytes, disk_bytes)
    values (${id}, 'web', 1, 0, ${nodeId}, ${desired}, 1, '\\x00', 0, 0, 0)`.execute(store.db);
}

function seen(id: string, facts: Partial<ReportedExecution> = {}): ReportedExecution {
  return {
    ...{ id, observed: "RUNNING", startedAtMs: 1_000, endedAtMs: null, end: null, exitCode: null, signal: null },
    ...{ message: "", job: "web", specDigest: null, ...facts },
  };
}

function report(nodeId: string, number: number, facts: Partial<NodeReport> = {}): NodeReport {
  return { nodeId, epoch: 1, number, whole: false, executions: [], ...facts };
}

const observationOf = async (id: string) => (await getExecutions(store.db, [id]))[0]?.observation ?? null;
const observedRows = async (nodeId: string) => {
  const rows = await store.db
    .selectFrom("execution_observations")
    .select("execution_id")
    .where("node_id", "=", nodeId)
    .orderBy("execution_id")
    .execute();
  return rows.map(({ execution_id: id }) => id);
};
const observedIds = async (position: string) =>
  (await readObservedIds(store.db, { position, after: "", limit: 100 })).items;

describe("saveObservations()", () => {
  it("should keep a node's newest report, and notify readers only of changes", async () => {
    await addWorkNode(store, "n1");
    await execution("e1", "n1");
    const position = await changePosition(store.db);
    await saveObservations(store, [report("n1", 2, { executions: [seen("e1")] })]);
    expect(await observedIds(position)).toEqual(["e1"]);
    let after = "";
    // Wait for the position, because transactions of other databases can hold it back.
    await until("the position to be past it", async () => {
      after = await changePosition(store.db);
      return (await observedIds(after)).length === 0;
    });
    await saveObservations(store, [report("n1", 1, { executions: [seen("e1", { observed: "STARTING" })] })]);
    await saveObservations(store, [report("n1", 3, { executions: [seen("e1")] })]);
    expect(await observedIds(after)).toEqual([]);
    expect(await observationOf("e1")).toMatchObject({ observed: "RUNNING", epoch: 1, report: 2, startedAtMs: 1_000 });
    await saveObservations(store, [report("n1", 4, { executions: [seen("e1", { observed: "READY" })] })]);
    const ready = await observationOf("e1");
    expect(ready?.readySinceMs).not.toBeNull();
    await saveObservations(store, [report("n1", 5, { executions: [seen("e1", { observed: "READY", message: "x" })] })]);
    expect((await observationOf("e1"))?.readySinceMs).toBe(ready?.readySinceMs);
  });

  it("should keep an end unless a later report has the execution running", async () => {
    await addWorkNode(store, "ending");
    await execution("ended", "ending");
    const end = { observed: "ENDED", endedAtMs: 2_000, end: "EXITED", exitCode: 3 } as const;
    await saveObservations(store, [report("ending", 2, { executions: [seen("ended", end)] })]);
    await saveObservations(store, [report("ending", 1, { executions: [seen("ended")] })]);
    await saveObservations(store, [report("ending", 3, { whole: true })]);
    const again = { ...end, end: "GONE", exitCode: null } as const;
    await saveObservations(store, [report("ending", 4, { executions: [seen("ended", again)] })]);
    expect(await observationOf("ended")).toMatchObject({ ...end, missing: 0 });
    for (const [index, observed] of (["STARTING", "RUNNING", "READY"] as const).entries()) {
      const number = 5 + 2 * index;
      await saveObservations(store, [report("ending", number, { executions: [seen("ended", { observed })] })]);
      expect(await observationOf("ended")).toMatchObject({ observed, endedAtMs: null, end: null, exitCode: null });
      await saveObservations(store, [report("ending", number + 1, { executions: [seen("ended", end)] })]);
      expect(await observationOf("ended")).toMatchObject(end);
    }
  });

  it("should ignore reports of a session that is no longer the node's", async () => {
    await addWorkNode(store, "moved");
    await execution("e2", "moved");
    expect(await connectNode(store, "moved", "r2")).toBe(2);
    await saveObservations(store, [report("moved", 9, { executions: [seen("e2")] })]);
    expect(await observationOf("e2")).toBeNull();
    await saveObservations(store, [report("moved", 1, { epoch: 2, executions: [seen("e2")] })]);
    expect(await observationOf("e2")).toMatchObject({ epoch: 2, report: 1 });
  });

  it("should ignore a node's report about another node's execution", async () => {
    await addWorkNode(store, "owner");
    await addWorkNode(store, "thief");
    await execution("e3", "owner");
    const stolen = [seen("e3", { observed: "ENDED", end: "EXITED", exitCode: 0 }), seen("own")];
    await saveObservations(store, [report("thief", 1, { executions: stolen })]);
    expect(await observationOf("e3")).toBeNull();
    await saveObservations(store, [report("owner", 1, { executions: [seen("own", { observed: "ENDED" })] })]);
    const unknown = await readUnknownExecutions(store.db, { position: "0", after: "", limit: 100 });
    const facts = { job: "web", specDigest: null, observed: "RUNNING", ports: {}, gpuUuids: [] };
    expect(unknown).toEqual([{ id: "own", nodeId: "thief", ...facts }]);
  });

  it("should record no end of an execution that the store does not know", async () => {
    await addWorkNode(store, "past");
    const over = seen("overlong", { observed: "ENDED", end: "EXITED", exitCode: 0 });
    expect(await saveObservations(store, [report("past", 1, { executions: [over] })])).toEqual({ cutNodeIds: [] });
    expect(await observedRows("past")).toEqual([]);
  });

  it("should limit the recorded unknown executions of a node, and record more later", async () => {
    await addWorkNode(store, "liar");
    const claims = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => seen(`liar${String(from + index).padStart(6, "0")}`));
    const say = (number: number, executions: readonly ReportedExecution[]) =>
      saveObservations(store, [report("liar", number, { executions })]);
    expect(await say(1, claims(0, 3_600))).toEqual({ cutNodeIds: ["liar"] });
    expect(await say(2, claims(10_000, 3_600))).toEqual({ cutNodeIds: ["liar"] });
    const recorded = await observedRows("liar");
    expect(recorded).toHaveLength(MOST_UNKNOWN_OF_NODE);
    // Count executions that ended recently too. Otherwise new ids could replace old ones without end.
    const ended = claims(0, 1_000).map((one) => ({ ...one, observed: "ENDED", end: "EXITED" }) as const);
    await say(3, ended);
    expect(await say(4, claims(20_000, 100))).toEqual({ cutNodeIds: ["liar"] });
    expect(await observedRows("liar")).toHaveLength(MOST_UNKNOWN_OF_NODE);
    await sql`
      update execution_observations set observed_at = now() - interval '61 minutes' where node_id = 'liar'`.execute(
      store.db,
    );
    expect(await say(5, claims(20_000, 100))).toEqual({ cutNodeIds: [] });
    expect(await observedRows("liar")).toHaveLength(MOST_UNKNOWN_OF_NODE + 100);
  });

  it("should limit unknown executions in total, even concurrently, and record more once a node is no longer approved", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `many${index}`);
    for (const name of names) await addWorkNode(store, name);
    const unknown = () =>
      sql<{ count: number }>`
      select count(*)::integer as count from execution_observations as o join nodes as n on n.id = o.node_id
      where o.unknown and n.membership = 'APPROVED'
        and (o.observed <> 'ENDED' or o.observed_at > now() - interval '1 hour')`.execute(store.db);
    const say = (name: string, number: number) => {
      const executions = Array.from({ length: 1_500 }, (_, index) => seen(`${name}x${index}`));
      return saveObservations(store, [report(name, number, { executions })]);
    };
    const cut = (await Promise.all(names.map((name) => say(name, 1)))).flatMap(({ cutNodeIds }) => cutNodeIds);
    expect(cut.sort()).toEqual([...names].sort());
    // Ten nodes together reach the total limit. Each of the other two can still record its first executions.
    const most = MOST_UNKNOWN + 2 * FIRST_UNKNOWN_OF_NODE;
    expect((await unknown()).rows).toEqual([{ count: most }]);
    const counts = await Promise.all(names.map(async (name) => (await observedRows(name)).length));
    expect(Math.min(...counts)).toBe(FIRST_UNKNOWN_OF_NODE);
    const full = names.find((_, index) => counts[index] === MOST_UNKNOWN_OF_NODE) ?? "";
    await sql`update nodes set membership = 'REJECTED' where id = ${full}`.execute(store.db);
    await Promise.all(names.map((name) => say(name, 2)));
    expect((await unknown()).rows).toEqual([{ count: MOST_UNKNOWN }]);
    expect(await observedRows(full)).toHaveLength(MOST_UNKNOWN_OF_NODE);
    await sql`delete from execution_observations where unknown`.execute(store.db);
  });

  it("should count the unknown executions of nodes that left, so that new names do not allow more", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `leaver${index}`);
    const counts: number[] = [];
    for (const name of names) {
      await addWorkNode(store, name);
      const executions = Array.from({ length: 1_500 }, (_, index) => seen(`${name}x${index}`));
      await saveObservations(store, [report(name, 1, { executions })]);
      counts.push((await observedRows(name)).length);
      await sql`delete from nodes where id = ${name}`.execute(store.db);
    }
    expect(counts.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => MOST_UNKNOWN_OF_NODE));
    expect(counts.slice(10)).toEqual([FIRST_UNKNOWN_OF_NODE, FIRST_UNKNOWN_OF_NODE]);
    await sql`update execution_observations set observed_at = now() - interval '61 minutes' where unknown`.execute(
      store.db,
    );
    await addWorkNode(store, "later");
    const executions = Array.from({ length: 100 }, (_, index) => seen(`later${index}`));
    expect(await saveObservations(store, [report("later", 1, { executions })])).toEqual({ cutNodeIds: [] });
    await sql`delete from execution_observations where unknown`.execute(store.db);
  });

  it("should record no unknown executions of a node that is not approved", async () => {
    await addWorkNode(store, "pending");
    await sql`update nodes set membership = 'PENDING' where id = 'pending'`.execute(store.db);
    const reported = [report("pending", 1, { executions: [seen("p1")] })];
    expect(await saveObservations(store, reported)).toEqual({ cutNodeIds: ["pending"] });
    expect(await observedRows("pending")).toEqual([]);
    await sql`update nodes set membership = 'APPROVED' where id = 'pending'`.execute(store.db);
    const again = [report("pending", 2, { executions: [seen("p1")] })];
    expect(await saveObservations(store, again)).toEqual({ cutNodeIds: [] });
    expect(await observedRows("pending")).toEqual(["p1"]);
  });

  it("should count consecutive complete reports that lack an execution", async () => {
    await addWorkNode(store, "lacking");
    for (const id of ["kept", "lost", "coming"]) await execution(id, "lacking");
    await execution("stopped", "lacking", "STOP");
    const both = [seen("kept"), seen("lost")];
    await saveObservations(store, [report("lacking", 1, { executions: both })]);
    const whole = (number: number, ...executions: ReportedExecution[]) =>
      saveObservations(store, [report("lacking", number, { whole: true, executions })]);
    await whole(2, seen("kept"));
    await whole(2, seen("kept"));
    expect((await observationOf("lost"))?.missing).toBe(1);
    await whole(3, ...both);
    expect((await observationOf("lost"))?.missing).toBe(0);
    await whole(4, seen("kept"));
    await whole(5, seen("kept"));
    expect((await observationOf("lost"))?.missing).toBe(2);
    expect(await observationOf("stopped")).toMatchObject({ observed: "ABSENT", missing: 5 - 1 });
    // Do not count this execution as missing, because it may still be on its way to the node.
    expect(await observationOf("coming")).toBeNull();
    expect((await observationOf("kept"))?.missing).toBe(0);
  });

  it("should show readers every change, in any commit order", async () => {
    const nodes = Array.from({ length: 8 }, (_, number) => `writer-${number}`);
    for (const node of nodes) {
      await addWorkNode(store, node);
      for (let number = 0; number < 20; number += 1) await execution(`${node}-${number}`, node);
    }
    let position = await changePosition(store.db);
    const found = new Set<string>();
    const read = async () => {
      const { items, position: next } = await readObservedIds(store.db, { position, after: "", limit: 1_000 });
      // Transactions of other databases can hold the position back, so changes from earlier tests may be read again.
      for (const id of items) if (id.startsWith("writer-")) found.add(id);
      position = next;
    };
    let writing = true;
    const reading = (async () => {
      while (writing) await read();
      await read();
    })();
    await Promise.all(
      nodes.map(async (node) => {
        for (let number = 0; number < 20; number += 1) {
          await saveObservations(store, [report(node, number + 1, { executions: [seen(`${node}-${number}`)] })]);
        }
      }),
    );
    writing = false;
    await reading;
    expect(found.size).toBe(nodes.length * 20);
  });
});
