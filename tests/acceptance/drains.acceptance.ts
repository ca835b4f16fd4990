import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, expect, it } from "@jest/globals";
import { SchedulingState } from "../../libs/api/src/gen/rollcall/node/v1/node_pb.ts";
import { ExecutionState } from "../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { JobType } from "../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { needsRoot } from "../../libs/testkit/src/jest/needs.ts";
import { type CountedJob, WorkFixture } from "../../services/rollcall/src/testing/work-fixture.ts";

const LIMIT_MS = 300_000;
const NODES = ["one", "two"];

// Only root can run executions as another user, so skip these tests otherwise.
const { describe: asRoot } = needsRoot();

asRoot("a drain of a real machine", () => {
  let fixture: WorkFixture;
  const jobs: CountedJob[] = [];

  beforeAll(async () => {
    fixture = await WorkFixture.start();
    for (const name of NODES) await fixture.startAgent(name);
  }, LIMIT_MS);

  afterEach(async () => {
    for (const job of jobs.splice(0)) await fixture.stopped(job);
    for (const name of NODES) {
      await fixture.rollcall("node", "undrain", name).exit();
      await fixture.rollcall("node", "uncordon", name).exit();
    }
  }, LIMIT_MS);

  afterAll(() => fixture.dispose(), LIMIT_MS);

  /** Run a job. Returns its executions. */
  async function run(job: CountedJob, count = 1) {
    jobs.push(job);
    await job.submit();
    return fixture.ready(job, count);
  }

  /** Drain a node, and wait until the command line reports that the drain is done. */
  async function drain(node: string, ...flags: readonly string[]): Promise<void> {
    const drained = fixture.rollcall("node", "drain", node, ...flags);
    expect([await drained.exit(), drained.err]).toEqual([0, expect.any(String)]);
    expect((await fixture.client.node(node))?.scheduling?.state).toBe(SchedulingState.DRAINED);
  }

  /**
   * Return the times of a finished drain, and an execution that the drain ended. All times are from the store's
   * clock.
   */
  async function recordOf(job: CountedJob, id: string) {
    const ended = (await fixture.executions(job)).find((execution) => execution.id === id);
    const { drain: done } = await fixture.client.admin.getDrain({ node: ended?.nodeId ?? "" });
    if (done?.startTime === undefined || done.deadline === undefined) throw new Error("the drain has no times");
    if (ended?.endTime === undefined) throw new Error(`execution ${id} has no end`);
    const times = { startMs: timestampMs(done.startTime), deadlineMs: timestampMs(done.deadline) };
    return { ended, endMs: timestampMs(ended.endTime), ...times };
  }

  const other = (node: string) => NODES.find((name) => name !== node);

  it(
    "should leave daemons where it is to ignore them, and move the others",
    async () => {
      const daemon = fixture.service({ type: JobType.DAEMON });
      await run(daemon, NODES.length);
      const pids = await fixture.running(daemon);
      const service = fixture.service();
      const [first] = await run(service);
      await drain(first?.nodeId ?? "", "--ignore-daemons");
      expect((await fixture.survivor(service))?.nodeId).toBe(other(first?.nodeId ?? ""));
      expect(await fixture.running(daemon)).toEqual(pids);
    },
    LIMIT_MS,
  );

  it(
    "should stop daemons, too, where it is not to ignore them",
    async () => {
      const daemon = fixture.service({ type: JobType.DAEMON });
      await run(daemon, NODES.length);
      await drain("one");
      expect(await fixture.running(daemon)).toHaveLength(NODES.length - 1);
      expect((await fixture.ready(daemon)).map(({ nodeId }) => nodeId)).toEqual(["two"]);
    },
    LIMIT_MS,
  );

  it(
    "should keep the node ineligible after it was cancelled where it is to",
    async () => {
      await drain("one", "--keep-ineligible");
      expect(await fixture.rollcall("node", "undrain", "one").exit()).toBe(0);
      const node = await fixture.client.node("one");
      expect([node?.scheduling?.state, node?.mayTakeWork]).toEqual([SchedulingState.INELIGIBLE, false]);
    },
    LIMIT_MS,
  );

  it(
    "should kill after the grace of its job what ignores the signal",
    async () => {
      const stubborn = fixture.service({}, { does: "trap '' TERM; sleep 0.2", graceMs: 1_500 });
      const [first] = await run(stubborn);
      const [pid] = await fixture.running(stubborn);
      await drain(first?.nodeId ?? "");
      expect(await fixture.running(stubborn)).not.toContain(pid);
      expect((await fixture.survivor(stubborn))?.nodeId).toBe(other(first?.nodeId ?? ""));
    },
    LIMIT_MS,
  );

  it(
    "should let a batch execution run until the deadline, and then move it, which is no failed attempt",
    async () => {
      const batch = fixture.service({ type: JobType.BATCH });
      const [first] = await run(batch);
      await drain(first?.nodeId ?? "", "--deadline", "3s");
      const [second] = await fixture.ready(batch);
      expect(second).toMatchObject({ previousId: first?.id, nodeId: other(first?.nodeId ?? ""), attempt: 0 });
      const { ended, endMs, deadlineMs } = await recordOf(batch, first?.id ?? "");
      expect(ended).toMatchObject({ state: ExecutionState.STOPPED, reason: "NODE_DRAINED" });
      expect(endMs).toBeGreaterThanOrEqual(deadlineMs);
      expect(await fixture.running(batch)).toHaveLength(1);
    },
    LIMIT_MS,
  );

  it(
    "should end by force at once what might run for an hour more",
    async () => {
      const batch = fixture.service({ type: JobType.BATCH });
      const [first] = await run(batch);
      await drain(first?.nodeId ?? "", "--deadline", "1h", "--force");
      const [second] = await fixture.ready(batch);
      expect(second).toMatchObject({ previousId: first?.id, nodeId: other(first?.nodeId ?? "") });
      const { endMs, deadlineMs } = await recordOf(batch, first?.id ?? "");
      expect(endMs).toBeLessThan(deadlineMs);
    },
    LIMIT_MS,
  );

  it(
    "should wait by force beyond the deadline for the grace of what ignores the signal, and have its end confirmed",
    async () => {
      const graceMs = 6_000;
      const batch = fixture.service({ type: JobType.BATCH }, { does: "trap '' TERM; sleep 0.2", graceMs });
      const [first] = await run(batch);
      const [pid] = await fixture.running(batch);
      await drain(first?.nodeId ?? "", "--deadline", "1s", "--force");
      expect(await fixture.running(batch)).not.toContain(pid);
      const { ended, endMs, startMs, deadlineMs } = await recordOf(batch, first?.id ?? "");
      expect(ended).toMatchObject({ state: ExecutionState.STOPPED, reason: "NODE_DRAINED" });
      expect(deadlineMs - startMs).toBeLessThan(graceMs);
      expect(endMs - startMs).toBeGreaterThanOrEqual(graceMs);
      expect((await fixture.ready(batch))[0]).toMatchObject({ previousId: first?.id, attempt: 0 });
    },
    LIMIT_MS,
  );
});
