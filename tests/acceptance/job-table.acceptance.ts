import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { ExecutionState, ExecutionStateSchema } from "../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { JobType } from "../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { eventually } from "../../libs/testkit/src/eventually.ts";
import { needsRoot } from "../../libs/testkit/src/jest/needs.ts";
import { until } from "../../libs/testkit/src/time.ts";
import { type CountedJob, WorkFixture } from "../../services/rollcall/src/testing/work-fixture.ts";
import { AgentPath } from "./agent-path.ts";

const LIMIT_MS = 300_000;
/** The nodes. There is a third node so that the loss of one node does not engage the brake. */
const NODES = ["one", "two", "spare"];
const TYPES = { batch: JobType.BATCH, daemon: JobType.DAEMON, ops: JobType.OPS, service: JobType.SERVICE } as const;
type Type = keyof typeof TYPES;
const ALL = Object.keys(TYPES) as readonly Type[];
const MOVING = ALL.filter((type) => type !== "ops");
const { FAILED, LOST, READY, REPLACED, STOPPED } = ExecutionState;
const wordFor = (state: ExecutionState) => ExecutionStateSchema.value[state]?.localName ?? "";

// Only root can run executions as another user, so skip these tests otherwise.
const { describe: asRoot } = needsRoot();

asRoot("the table of jobs, with real machines", () => {
  let fixture: WorkFixture;
  let path: AgentPath;
  /** The jobs of one test, keyed by type. */
  const jobs = new Map<string, CountedJob>();

  beforeAll(async () => {
    fixture = await WorkFixture.start();
    path = await AgentPath.open(fixture, "127.0.0.21");
    await fixture.startAgent("one", path.server);
    for (const name of NODES.slice(1)) await fixture.startAgent(name);
  }, LIMIT_MS);

  beforeEach(async () => {
    await label("one", "here");
    for (const name of NODES.slice(1)) await label(name, "elsewhere");
  }, LIMIT_MS);

  afterEach(async () => {
    for (const job of jobs.values()) await fixture.stopped(job);
    jobs.clear();
  }, LIMIT_MS);

  afterAll(async () => {
    await fixture.dispose();
    await path.close();
  }, LIMIT_MS);

  const label = (node: string, zone: string) => fixture.client.admin.setNodeLabels({ node, set: { zone } });

  /** Run a job of each type on node one. Batch and service jobs have `count` executions on different nodes. */
  async function begin(count = 1): Promise<void> {
    for (const type of ALL) {
      const wanted = type === "batch" || type === "service" ? { count } : {};
      const placement = { maxPerNode: 1 };
      const job = fixture.service({ type: TYPES[type], ...wanted, selector: "zone!=elsewhere", placement });
      jobs.set(type, job);
      await job.submit();
    }
    await on("one", READY, ALL);
  }

  /** Return the executions of a node as types with states and reasons. */
  async function executionsOn(node: string) {
    const { executions } = await fixture.client.jobs.listExecutions({ nodeId: node, pageSize: 1_000 });
    const types = new Map([...jobs].map(([type, { name }]) => [name, type]));
    return executions.flatMap(({ job, ...rest }) => {
      const type = types.get(job);
      return type === undefined ? [] : [{ ...rest, type }];
    });
  }

  /** Wait until exactly the jobs of these types have executions in this state on a node. */
  async function on(node: string, state: ExecutionState, wanted: readonly Type[]): Promise<void> {
    let seen: readonly string[] = [];
    await until(`${wanted.join(", ")} in state ${wordFor(state)} on ${node}`, async () => {
      const found = await executionsOn(node);
      const types = found.filter((it) => it.state === state).map(({ type }) => type);
      seen = found.map((it) => `${it.type} ${wordFor(it.state)} ${it.reason}`);
      return types.sort().join() === [...wanted].sort().join();
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}; it has ${JSON.stringify(seen)}`);
    });
  }

  /** Return the reasons of ended or lost executions on a node. */
  async function reasonsOn(node: string): Promise<Readonly<Record<string, string>>> {
    const found = (await executionsOn(node)).filter(({ state }) => state !== READY);
    return Object.fromEntries(found.map(({ type, state, reason }) => [type, `${wordFor(state)} ${reason}`]));
  }

  /** Wait until each job has this number of running processes. */
  async function running(counts: Readonly<Record<Type, number>>): Promise<void> {
    for (const [type, count] of Object.entries(counts)) {
      const job = jobs.get(type);
      if (job === undefined) throw new Error(`there is no job of type ${type}`);
      let seen = -1;
      await until(`${count} processes of ${type}`, async (): Promise<boolean> => {
        seen = (await fixture.running(job)).length;
        return seen === count;
      }).catch((error: unknown) => {
        throw new Error(`${String(error)}; there are ${seen}`);
      });
    }
  }

  /** Wait until the leader has handled everything so far, by submitting a job that it places only afterwards. */
  async function leaderScanned(node: string): Promise<void> {
    const probe = fixture.service({ constraints: { node } });
    await probe.submit();
    await fixture.ready(probe);
    await fixture.stopped(probe);
  }

  it.each([
    [
      "was killed",
      async (): Promise<unknown> => fixture.agent("one").killed(),
      async (): Promise<void> => fixture.startAgent("one", path.server),
    ],
    [
      "was cut off",
      async (): Promise<unknown> => path.cut(true),
      async (): Promise<void> => {
        path.cut(false);
        await fixture.client.becomes("one", "APPROVED CONNECTED HEALTHY");
      },
    ],
  ] as const)(
    "should move, fail and keep what runs on a node whose agent %s, and leave one of each when it is back",
    async (_, lose, bringBack) => {
      await begin();
      const [daemon] = (await executionsOn("one")).filter(({ type }) => type === "daemon");
      await lose();
      await until("it to be lost", async () => (await executionsOn("one")).some(({ state }) => state !== READY));
      await label("two", "here");
      await on("two", READY, MOVING);
      await eventually(async () => {
        expect(await reasonsOn("one")).toMatchObject({ ops: "FAILED NODE_LOST", daemon: "LOST NODE_LOST" });
      });
      // Executions on the disconnected machine keep running.
      await running({ batch: 2, service: 2, ops: 1, daemon: 2 });
      await bringBack();
      await on("one", READY, ["daemon"]);
      await on("one", REPLACED, ["batch", "service"]);
      await on("one", FAILED, ["ops"]);
      await on("one", LOST, []);
      await running({ batch: 1, service: 1, ops: 0, daemon: 2 });
      expect((await executionsOn("one")).find(({ state }) => state === READY)?.id).toBe(daemon?.id);
    },
    LIMIT_MS,
  );

  it(
    "should fill up on nodes that join, match and become eligible, and evict daemons alone where labels stop matching",
    async () => {
      await begin(3);
      await fixture.startAgent("late");
      await on("late", READY, MOVING);
      await fixture.client.admin.cordonNode({ node: "two" });
      await label("two", "here");
      await leaderScanned("late");
      expect(await executionsOn("two")).toEqual([]);
      await fixture.client.admin.uncordonNode({ node: "two" });
      await on("two", READY, MOVING);
      await fixture.client.admin.cordonNode({ node: "one" });
      await leaderScanned("late");
      await on("one", READY, ALL);
      await label("two", "elsewhere");
      await on("two", READY, ["batch", "service"]);
      await eventually(async () => {
        expect(await reasonsOn("two")).toEqual({ daemon: "STOPPED NODE_LABELS_CHANGED" });
      });
      await running({ batch: 3, service: 3, ops: 1, daemon: 2 });
      await fixture.client.admin.uncordonNode({ node: "one" });
      await label("late", "elsewhere");
    },
    LIMIT_MS,
  );

  it(
    "should move services and batch executions off a node that is drained, fail ops jobs and stop daemons",
    async () => {
      await begin();
      await label("two", "here");
      const drained = fixture.rollcall("node", "drain", "one", "--deadline", "3s");
      expect([await drained.exit(), drained.err]).toEqual([0, expect.any(String)]);
      await on("two", READY, MOVING);
      await eventually(async () => {
        expect(await reasonsOn("one")).toMatchObject({
          ...{ batch: "STOPPED NODE_DRAINED", ops: "FAILED NODE_DRAINED", daemon: "STOPPED NODE_DRAINED" },
          service: expect.stringMatching(/ NODE_DRAINED$/),
        });
      });
      await running({ batch: 1, service: 1, ops: 0, daemon: 1 });
      await fixture.client.admin.cancelDrain({ node: "one" });
    },
    LIMIT_MS,
  );

  it.each([
    ["deleted", "NODE_DELETED", () => fixture.client.admin.deleteNode({ node: "one" }), () => Promise.resolve()],
    [
      "rejected",
      "NODE_REJECTED",
      () => fixture.client.admin.rejectNode({ node: "one" }),
      () => fixture.client.admin.approveNode({ node: "one" }),
    ],
    [
      "rejected while its agent is away",
      "NODE_REJECTED",
      async (): Promise<void> => {
        await fixture.agent("one").killed();
        await fixture.client.admin.rejectNode({ node: "one" });
        fixture.startOutcast("one", path.server);
      },
      () => fixture.client.admin.approveNode({ node: "one" }),
    ],
  ] as const)(
    "should move, fail and stop what runs on a node that is %s, on its machine, too",
    async (_, reason, castOut, takeBack) => {
      await begin();
      await label("two", "here");
      await on("two", READY, ["daemon"]);
      await castOut();
      await on("two", READY, MOVING);
      await running({ batch: 1, service: 1, ops: 0, daemon: 1 });
      await eventually(async () => {
        expect(await reasonsOn("one")).toEqual({
          ...{ batch: `STOPPED ${reason}`, service: `STOPPED ${reason}`, daemon: `STOPPED ${reason}` },
          ops: `FAILED ${reason}`,
        });
      });
      await takeBack();
      await fixture.agent("one").killed();
      await fixture.startAgent("one", path.server);
      await on("one", STOPPED, MOVING);
    },
    LIMIT_MS,
  );
});
