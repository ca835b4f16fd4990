import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type Execution, ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { getNode } from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { serviceOf, TYPE_OF } from "../testing/job-specs.ts";
import { Operators } from "../testing/operators.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const UPDATE = { minReadyTime: durationFromMs(0), maxParallel: 1 };
const FAST = { pollMs: 100 };
type Type = keyof typeof TYPE_OF;

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
let operators: Operators;
/** The zone of a test. Together with the names of nodes and jobs, it keeps tests apart. */
let zone: string;
let tests = 0;
beforeAll(async () => {
  database = await createTestDatabase();
  workers = new FakeWorkers(database.store);
  operators = new Operators(database.store);
  rig = await startRig(database.store, { timing: FAST });
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
beforeEach(() => {
  tests += 1;
  zone = `z${tests}`;
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const nodeOf = (name: string) => `${zone}-${name}`;

async function join(name: string): Promise<void> {
  await addWorkNode(database.store, nodeOf(name));
  await operators.label(nodeOf(name), "zone", zone);
}

/** Start jobs that run on node a; then add node b. */
async function begin(...types: readonly Type[]): Promise<void> {
  await join("a");
  for (const type of types) await submit(type);
  await settled(async () => expect(await readyOn("a")).toEqual([...types].sort()));
  await join("b");
}

async function submit(type: Type): Promise<void> {
  const part = { type: TYPE_OF[type], update: UPDATE, selector: `zone=${zone}` };
  await rig.jobs.submitJob({ spec: serviceOf(nodeOf(type), type === "batch" || type === "service" ? 1 : 0, part) });
}

async function executionsOn(name: string): Promise<readonly Execution[]> {
  return (await rig.jobs.listExecutions({ nodeId: nodeOf(name), pageSize: 100 })).executions;
}

const typeOf = ({ job }: Execution) => job.slice(zone.length + 1);

async function readyOn(name: string): Promise<readonly string[]> {
  return (await executionsOn(name))
    .filter(({ state }) => state === ExecutionState.READY)
    .map(typeOf)
    .sort();
}

const stateOf = async (name: string) => (await getNode(database.store.db, nodeOf(name)))?.scheduling.state;

async function settled(assertion: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    const there = await Promise.all(
      ["a", "b"].map(async (it) => ((await stateOf(it)) === undefined ? [] : nodeOf(it))),
    );
    await workers.work(there.flat());
    await assertion();
  });
}

// The cases of Nomad's drain tests.
describe("a drain", () => {
  it("should keep daemons when told to ignore them", async () => {
    await begin("service", "daemon");
    await operators.drain(nodeOf("a"), { ignoreDaemons: true });
    await settled(async () => expect(await stateOf("a")).toBe("DRAINED"));
    expect(await readyOn("a")).toEqual(["daemon"]);
    expect(await readyOn("b")).toEqual(["daemon", "service"]);
  });

  it("should move a service, which is ready elsewhere before the node is drained, and stop daemons last", async () => {
    await begin("service", "daemon");
    await operators.drain(nodeOf("a"));
    await settled(async () => expect(await stateOf("a")).toBe("DRAINED"));
    expect(await readyOn("b")).toEqual(["daemon", "service"]);
    const executions = await executionsOn("a");
    const ends = executions.map((it) => [typeOf(it), it.state, it.reason, it.attempt]);
    expect(ends.sort()).toEqual([
      ["daemon", ExecutionState.STOPPED, "NODE_DRAINED", 0],
      ["service", ExecutionState.REPLACED, "NODE_DRAINED", 0],
    ]);
    const [service] = executions.filter((it) => typeOf(it) === "service");
    const [daemon] = executions.filter((it) => typeOf(it) === "daemon");
    expect(Number(daemon?.endTime?.seconds)).toBeGreaterThanOrEqual(Number(service?.endTime?.seconds));
  });

  it("should keep a node ineligible after cancellation when requested, and place nothing there", async () => {
    await begin("service");
    await operators.drain(nodeOf("a"), { keepIneligible: true });
    await settled(async () => expect(await stateOf("a")).toBe("DRAINED"));
    await operators.undrain(nodeOf("a"));
    expect(await stateOf("a")).toBe("INELIGIBLE");
    await rig.jobs.scaleJob({ name: nodeOf("service"), count: 3 });
    await settled(async () => expect(await readyOn("b")).toHaveLength(3));
    expect(await readyOn("a")).toEqual([]);
    await operators.uncordon(nodeOf("a"));
    await submit("daemon");
    await settled(async () => expect(await readyOn("a")).toEqual(["daemon"]));
  });

  it("should be done only when its node has confirmed the end, however long that takes to stop", async () => {
    await begin("batch");
    workers.turnOff(nodeOf("a"));
    await operators.drain(nodeOf("a"), { force: true });
    // The execution was ordered to stop, but its node is off.
    await eventually(async () => {
      const executions = await executionsOn("a");
      expect(executions).toMatchObject([{ reason: "NODE_DRAINED", state: ExecutionState.READY }]);
    });
    await rig.jobs.scaleJob({ name: nodeOf("batch"), count: 2 });
    await settled(async () => expect(await readyOn("b")).toEqual(["batch"]));
    expect(await stateOf("a")).toBe("DRAINING");
    workers.turnOn(nodeOf("a"));
    await settled(async () => expect(await stateOf("a")).toBe("DRAINED"));
    await settled(async () => expect(await readyOn("b")).toEqual(["batch", "batch"]));
  });

  it("should let batch and ops executions finish until the deadline, and then move or end them", async () => {
    await begin("batch", "ops");
    await operators.drain(nodeOf("a"));
    await submit("service");
    await settled(async () => expect(await readyOn("b")).toEqual(["service"]));
    expect([await stateOf("a"), await readyOn("a")]).toEqual(["DRAINING", ["batch", "ops"]]);
    await operators.drain(nodeOf("a"), { deadlineMs: 1 });
    await settled(async () => expect(await stateOf("a")).toBe("DRAINED"));
    await settled(async () => expect(await readyOn("b")).toEqual(["batch", "service"]));
    const executions = await executionsOn("a");
    expect(executions.map((it) => [typeOf(it), it.state]).sort()).toEqual([
      ["batch", ExecutionState.STOPPED],
      ["ops", ExecutionState.FAILED],
    ]);
    const [moved] = (await executionsOn("b")).filter((it) => typeOf(it) === "batch");
    expect(moved).toMatchObject({ attempt: 0 });
  });

  it("should end everything at once by force, unconfirmed if the node cannot answer", async () => {
    await begin("service", "batch", "ops", "daemon");
    workers.turnOff(nodeOf("a"));
    await database.store.db
      .updateTable("node_sessions")
      .set({ connection: "DISCONNECTED" })
      .where("node_id", "=", nodeOf("a"))
      .execute();
    await operators.drain(nodeOf("a"), { force: true });
    await settled(async () => expect(await stateOf("a")).toBe("UNCONFIRMED"));
    const executions = await executionsOn("a");
    expect(executions.map(({ reason }) => reason)).toEqual(Array(4).fill("UNCONFIRMED"));
    await settled(async () => expect(await readyOn("b")).toEqual(["batch", "daemon", "service"]));
    // These executions still run on the node. They are stopped when the node reports again.
    expect(workers.runningOn(nodeOf("a"))).toHaveLength(4);
    workers.turnOn(nodeOf("a"));
    await settled(async () => expect(workers.runningOn(nodeOf("a"))).toEqual([]));
    await settled(async () => expect(await stateOf("a")).toBe("DRAINED"));
  });
});
