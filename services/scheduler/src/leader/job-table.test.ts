import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type Execution, ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { currentRevision } from "@rollcall/store";
import {
  addWorkNode,
  connectNode,
  createTestDatabase,
  evaluateNode,
  eventually,
  type TestDatabase,
} from "@rollcall/testkit";
import type { LeaderStep } from "../index.ts";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { allowReaction, serviceOf, TYPE_OF, tellOf } from "../testing/job-specs.ts";
import { Operators } from "../testing/operators.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const TYPES = ["batch", "service", "ops", "daemon"] as const;
const ALL = ["batch", "daemon", "ops", "service"];
const FAST = { pollMs: 100 };

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
let operators: Operators;
/** The zone of a test. Together with the names of nodes and jobs, it keeps tests apart. */
let zone: string;
let tests = 0;
/** A function that is called after each step of the leader. The leader waits until it has ended. */
let atStep: (step: LeaderStep) => Promise<void> = async () => {};
beforeAll(async () => {
  database = await createTestDatabase();
  workers = new FakeWorkers(database.store);
  operators = new Operators(database.store);
  rig = await startRig(database.store, { timing: FAST, afterStep: (step) => atStep(step) });
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
beforeEach(async () => {
  tests += 1;
  zone = `z${tests}`;
  await join("a");
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const nodeOf = (name: string) => `${zone}-${name}`;

async function join(name: string, where = zone, options: Parameters<typeof addWorkNode>[2] = {}): Promise<void> {
  await addWorkNode(database.store, nodeOf(name), options);
  await operators.label(nodeOf(name), "zone", where);
}

/**
 * Run one execution of a job of each type on node a. Batch and service jobs run `count` executions, on different nodes.
 */
async function begin(count = 1): Promise<void> {
  for (const type of TYPES) {
    const update = { minReadyTime: durationFromMs(0) };
    const part = { type: TYPE_OF[type], selector: `zone=${zone}`, placement: { maxPerNode: 1 }, update };
    const wanted = type === "batch" || type === "service" ? count : 0;
    await rig.jobs.submitJob({ spec: serviceOf(`${zone}-${type}`, wanted, part) });
  }
  await settled(async () => expect(await on("a", ExecutionState.READY)).toEqual(ALL));
}

async function executionsOn(name: string): Promise<readonly Execution[]> {
  return (await rig.jobs.listExecutions({ nodeId: nodeOf(name), pageSize: 100 })).executions;
}

const typeOf = ({ job }: Execution) => job.slice(zone.length + 1);

async function on(name: string, state: ExecutionState): Promise<readonly string[]> {
  return (await executionsOn(name))
    .filter((it) => it.state === state)
    .map(typeOf)
    .sort();
}

async function reasonsOn(name: string): Promise<Readonly<Record<string, string>>> {
  return Object.fromEntries((await executionsOn(name)).map((it) => [typeOf(it), `${it.state} ${it.reason}`]));
}

async function settled(assertion: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    const nodes = await database.store.db.selectFrom("nodes").select("id").where("type", "=", "COMPUTE").execute();
    await workers.work(nodes.map(({ id }) => id).filter((id) => id.startsWith(`${zone}-`)));
    await assertion();
  });
}

/** Wait until the leader has read all earlier changes: submit a job, and wait until it has been placed. */
async function leaderScanned(name: string): Promise<void> {
  await rig.jobs.submitJob({ spec: serviceOf(`${zone}-probe`, 1, { constraints: { node: nodeOf(name) } }) });
  await settled(async () => expect(await on(name, ExecutionState.READY)).toContain("probe"));
}

const { FAILED, LOST, READY, REPLACED, STOPPED } = ExecutionState;

describe("the table of jobs", () => {
  it("should do nothing about a lost node until the reaction is allowed, then move all but ops jobs and daemons", async () => {
    await begin();
    await join("b", "elsewhere");
    workers.turnOff(nodeOf("a"));
    await evaluateNode(database.store, nodeOf("a"), "UNHEALTHY");
    await eventually(async () => expect(await on("a", LOST)).toEqual(ALL));
    await join("c");
    await leaderScanned("b");
    await settled(async () => expect(await on("c", READY)).toEqual(["daemon"]));
    expect((await executionsOn("a")).map(({ replacedById }) => replacedById)).toEqual(["", "", "", ""]);
    await allowReaction(database.store, nodeOf("a"));
    await settled(async () => expect(await on("c", READY)).toEqual(["batch", "daemon", "service"]));
    expect(await reasonsOn("a")).toMatchObject({ ops: `${FAILED} NODE_LOST`, daemon: `${LOST} NODE_LOST` });
    // The node is back: its replaced executions stop, the daemon keeps running, and the ops job keeps its state.
    await database.store.db
      .updateTable("node_sessions")
      .set({ reaction: null, loss: null, loss_group: null, lost_since: null })
      .where("node_id", "=", nodeOf("a"))
      .execute();
    await connectNode(database.store, nodeOf("a"));
    await evaluateNode(database.store, nodeOf("a"), "HEALTHY");
    workers.turnOn(nodeOf("a"));
    await settled(async () => {
      expect(await on("a", READY)).toEqual(["daemon"]);
      expect(await on("a", REPLACED)).toEqual(["batch", "service"]);
      expect(await on("a", FAILED)).toEqual(["ops"]);
    });
  });

  it("should do nothing about a node that comes back between the plan after its loss and the commit", async () => {
    await begin();
    let isAllowed = false;
    let isRead = false;
    let isBack = false;
    // Pause the leader while the node is lost, and again after the leader has made a plan for the loss.
    atStep = async (step) => {
      if (step === "planned" && !isAllowed) {
        await evaluateNode(database.store, nodeOf("a"), "UNHEALTHY");
        await allowReaction(database.store, nodeOf("a"));
        isAllowed = true;
      } else if (step === "refreshed") {
        isRead = isAllowed;
      } else if (step === "planned" && isRead && !isBack) {
        isBack = true;
        await evaluateNode(database.store, nodeOf("a"), "HEALTHY");
      }
    };
    await eventually(() => expect(isBack).toBe(true));
    atStep = async () => {};
    await join("b");
    await settled(async () => expect(await on("b", READY)).toEqual(["daemon"]));
    expect(await on("a", READY)).toEqual(ALL);
    const executions = (await executionsOn("a")).map((it) => [typeOf(it), it.replacedById, it.reason]);
    expect(executions.sort()).toEqual(ALL.map((type) => [type, "", ""]));
  });

  it("should run an ops job on a node that has just got its label", async () => {
    await join("b", "elsewhere");
    await leaderScanned("b");
    let isSubmitted = false;
    // Pause the leader until it has received both events.
    atStep = async (step) => {
      if (step !== "planned" || isSubmitted) return;
      isSubmitted = true;
      await operators.label(nodeOf("b"), "zone", zone);
      const part = { type: TYPE_OF.ops, selector: `zone=${zone}` };
      await rig.jobs.submitJob({ spec: serviceOf(`${zone}-ops`, 0, part) });
      const head = await currentRevision(database.store.db);
      await eventually(() => expect(rig.position >= head).toBe(true));
    };
    await eventually(() => expect(isSubmitted).toBe(true));
    await settled(async () => expect(await on("b", READY)).toEqual(["ops", "probe"]));
    atStep = async () => {};
  });

  it.each<[string, () => Promise<void>, () => Promise<void>]>([
    ["joins", async () => {}, () => join("late")],
    [
      "is approved",
      () => join("late", zone, { membership: "PENDING" }),
      () => operators.membership(nodeOf("late"), "approve"),
    ],
    [
      "becomes eligible",
      async () => {
        await join("late");
        await operators.cordon(nodeOf("late"));
      },
      () => operators.uncordon(nodeOf("late")),
    ],
    [
      "has labels that come to match",
      () => join("late", "elsewhere"),
      () => operators.label(nodeOf("late"), "zone", zone),
    ],
    [
      "is well again",
      async () => {
        await join("late");
        await evaluateNode(database.store, nodeOf("late"), "UNHEALTHY");
      },
      () => evaluateNode(database.store, nodeOf("late"), "HEALTHY"),
    ],
  ])("should fill up batch jobs and services and place daemons on a node that %s", async (_, prepare, change) => {
    await prepare();
    await tellOf(database.store, nodeOf("late"));
    await begin(2);
    expect(await executionsOn("late")).toEqual([]);
    await change();
    await settled(async () => expect(await on("late", READY)).toEqual(["batch", "daemon", "service"]));
  });

  it("should evict only daemons from a node whose labels no longer match", async () => {
    await begin();
    await operators.label(nodeOf("a"), "zone", "elsewhere");
    await settled(async () => expect(await reasonsOn("a")).toMatchObject({ daemon: `${STOPPED} NODE_LABELS_CHANGED` }));
    expect(await on("a", READY)).toEqual(["batch", "ops", "service"]);
  });

  it("should keep everything on a cordoned node, and place nothing more there", async () => {
    await begin();
    await operators.cordon(nodeOf("a"));
    for (const type of ["batch", "service"]) await rig.jobs.scaleJob({ name: nodeOf(type), count: 2 });
    await join("b");
    await settled(async () => expect(await on("b", READY)).toEqual(["batch", "daemon", "service"]));
    expect(await on("a", READY)).toEqual(ALL);
    expect(await executionsOn("a")).toHaveLength(4);
  });

  it.each(["delete", "reject"] as const)(
    "should move, fail and stop what runs on a node that operators %s",
    async (kind) => {
      await begin();
      await operators.membership(nodeOf("a"), kind);
      await join("b");
      await settled(async () => expect(await on("b", READY)).toEqual(["batch", "daemon", "service"]));
      const reason = kind === "delete" ? "NODE_DELETED" : "NODE_REJECTED";
      expect(await reasonsOn("a")).toEqual({
        ...{ batch: `${STOPPED} ${reason}`, service: `${STOPPED} ${reason}`, daemon: `${STOPPED} ${reason}` },
        ops: `${FAILED} ${reason}`,
      });
    },
  );
});
