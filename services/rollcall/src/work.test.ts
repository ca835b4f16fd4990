import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Execution, ExecutionState, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { until } from "@rollcall/testkit/time";
import { processesOf } from "./testing/processes.ts";
import { endProcess, RollcallProcess } from "./testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "./testing/up-fixture.ts";

const RUNS_WORK = ["--executors", "process", "--work-user", "nobody"];

// Real processes on a busy machine: each wait has its own bound, and a test has several.
jest.setTimeout(240_000);

// Executions are another user's: only root can make them so.
const asRoot = process.getuid?.() === 0 ? describe : describe.skip;

asRoot("work on machines that come and go", () => {
  let fixture: UpFixture;
  const agents = new Map<string, RollcallProcess>();

  beforeAll(async () => {
    fixture = await createUpFixture();
    await fixture.up("--set", "Up.Agent=false");
    // Nodes fall several times here, which must not be held against them.
    const values = { flappingHold: { seconds: 0n } };
    await fixture.client.policies.setHealthPolicy({ scope: { scope: { case: "default", value: true } }, values });
    for (const name of ["alpha", "beta", "gamma"]) await start(name);
  });

  afterAll(async () => {
    for (const { pid } of await processesOf(fixture.dataDirectory)) endProcess(pid);
    await fixture.dispose();
  });

  async function start(name: string): Promise<void> {
    agents.set(name, fixture.agent(name, ...RUNS_WORK));
    await fixture.client.becomes(name, "APPROVED CONNECTED HEALTHY");
  }

  function agentOf(name: string): RollcallProcess {
    const agent = agents.get(name);
    if (agent === undefined) throw new Error(`there is no agent ${name}`);
    return agent;
  }

  /** Run the command line as its user does. */
  function rollcall(...words: readonly string[]): RollcallProcess {
    const at = ["--server", fixture.server, "--token-file", `${fixture.dataDirectory}/admin-token`];
    const end = words.indexOf("--");
    const place = end === -1 ? words.length : end;
    return new RollcallProcess([...words.slice(0, place), ...at, ...words.slice(place)]);
  }

  /** A job whose processes can be counted, on any of these nodes. */
  function service(changes: MessageInitShape<typeof JobSpecSchema> = {}) {
    const mark = `${fixture.dataDirectory}/${randomUUID()}`;
    const command = ["sh", "-c", "while :; do sleep 0.2; done", mark];
    const name = `job-${randomUUID().slice(0, 8)}`;
    const spec = { name, type: JobType.SERVICE, count: 1, ...changes, task: { case: "process", value: { command } } };
    return { name, mark, submit: () => fixture.client.jobs.submitJob({ spec: spec as typeof spec & { task: never } }) };
  }

  /** The processes of a job, each by its pid. */
  async function running(mark: string): Promise<readonly number[]> {
    const found = (await processesOf(mark)).filter(({ command }) => command.startsWith("sh -c while"));
    return found.map(({ pid }) => pid).sort();
  }

  async function executions(job: string): Promise<readonly Execution[]> {
    return (await fixture.client.jobs.listExecutions({ job })).executions;
  }

  async function ready(job: string, count = 1): Promise<readonly Execution[]> {
    return until(`${count} of ${job} to be ready`, async () => {
      const found = (await executions(job)).filter(({ state }) => state === ExecutionState.READY);
      return found.length === count && found;
    });
  }

  async function stopped(job: string, mark: string): Promise<void> {
    await fixture.client.jobs.stopJob({ name: job });
    await until(`no process of ${job}`, async () => (await running(mark)).length === 0);
  }

  it("should run a batch job to its end, and say how it ended", async () => {
    const command = ["sh", "-c", "echo out; echo err >&2; exit 7"];
    const name = `batch-${randomUUID().slice(0, 8)}`;
    await fixture.client.jobs.submitJob({
      spec: {
        ...{ name, type: JobType.BATCH, retry: { attempts: 0 } },
        task: { case: "process", value: { command } },
      },
    });
    const job = await until(`the end of ${name}`, async () => {
      const { job: seen } = await fixture.client.jobs.getJob({ name });
      return seen?.state === JobState.FAILED && seen;
    });
    expect(job.executions).toMatchObject({ failed: 1, completed: 0 });
    expect(await executions(name)).toMatchObject([
      { state: ExecutionState.FAILED, reason: "EXITED", observation: { exitCode: 7 } },
    ]);
  });

  it("should kill what uses more memory than it was given, and say so", async () => {
    const command = ["sh", "-c", 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); sleep 5'];
    const name = `oom-${randomUUID().slice(0, 8)}`;
    await fixture.client.jobs.submitJob({
      spec: {
        ...{ name, type: JobType.BATCH, retry: { attempts: 0 }, resources: { memoryBytes: 50_000_000n } },
        task: { case: "process", value: { command } },
      },
    });
    await until(`the end of ${name}`, async () => {
      return (await executions(name)).some(({ state }) => state === ExecutionState.KILLED_OOM);
    });
  });

  it("should move nothing and restart nothing while an agent is stopped and started, or its keeper killed", async () => {
    const job = service({ count: 20, selector: "", constraints: { node: "alpha" } });
    await job.submit();
    const before = await ready(job.name, 20);
    const pids = await running(job.mark);
    expect(pids).toHaveLength(20);
    expect(await agentOf("alpha").killed("SIGTERM")).toBe(0);
    await fixture.client.becomes("alpha", "APPROVED DISCONNECTED HEALTHY");
    await start("alpha");
    for (const keeper of await processesOf("rollcall keeper")) {
      if (keeper.command.includes("/alpha")) endProcess(keeper.pid);
    }
    await until("the executions to be reported again", async () => {
      const after = await executions(job.name);
      return after.length === 20 && after.every(({ state }) => state === ExecutionState.READY);
    });
    expect((await executions(job.name)).map(({ id }) => id).sort()).toEqual(before.map(({ id }) => id).sort());
    expect(await running(job.mark)).toEqual(pids);
    await stopped(job.name, job.mark);
  });

  it("should run a command from the command line: its output, its exit code, and what it wrote afterwards", async () => {
    const command = ["sh", "-c", "echo said; echo complained >&2; exit 5"];
    const ran = rollcall("run", "--name", "once", "--", ...command);
    expect(await ran.exit()).toBe(5);
    expect(ran.out).toBe("said\n");
    expect(ran.err).toMatch(/^complained$/m);
    const logs = rollcall("job", "logs", "once");
    expect([await logs.exit(), logs.out, logs.err]).toEqual([0, "said\n", "complained\n"]);
  });

  it("should move a service off a node that is drained, and say when that is done", async () => {
    const job = service({ selector: "" });
    await job.submit();
    const [first] = await ready(job.name);
    const from = first?.nodeId ?? "";
    const drain = rollcall("node", "drain", from, "--deadline", "5m");
    expect([await drain.exit(), drain.err]).toEqual([0, expect.any(String)]);
    const [second] = await ready(job.name);
    expect([second?.previousId, second?.nodeId === from]).toEqual([first?.id, false]);
    await until("one process", async () => (await running(job.mark)).length === 1);
    expect((await fixture.client.node(from))?.scheduling?.state).toBe(SchedulingState.DRAINED);
    expect(await rollcall("node", "undrain", from).exit()).toBe(0);
    expect((await fixture.client.node(from))?.mayTakeWork).toBe(true);
    await stopped(job.name, job.mark);
  });

  it.each([
    ["was killed", "SIGKILL", undefined],
    ["froze", "SIGSTOP", undefined],
    ["was killed", "SIGKILL", { seconds: 600n }],
    ["froze", "SIGSTOP", { seconds: 600n }],
  ] as const)(
    "should leave one execution when the node of one whose agent %s (%s) is back, with lostAfter %j",
    async (_, signal, lostAfter) => {
      const job = service(lostAfter === undefined ? {} : { loss: { lostAfter } });
      await job.submit();
      const [first] = await ready(job.name);
      const lost = first?.nodeId ?? "";
      const agent = agentOf(lost);
      agent.kill(signal);
      await until(`${lost} to be judged`, async () => {
        const found = (await executions(job.name)).find(({ id }) => id === first?.id);
        return found?.state === ExecutionState.LOST || found?.replacedById !== "";
      });
      if (lostAfter === undefined) {
        const [second] = await ready(job.name);
        expect([second?.previousId, second?.nodeId === lost]).toEqual([first?.id, false]);
        expect(await running(job.mark)).toHaveLength(2);
      } else {
        expect(await running(job.mark)).toHaveLength(1);
      }
      if (signal === "SIGSTOP") agent.kill("SIGCONT");
      else await start(lost);
      await fixture.client.becomes(lost, "APPROVED CONNECTED HEALTHY");
      const [survivor] = await until("one survivor", async () => {
        const found = await executions(job.name);
        const alive = found.filter(({ state }) => state === ExecutionState.READY);
        return (await running(job.mark)).length === 1 && alive.length === 1 && alive;
      });
      expect(survivor?.id === first?.id).toBe(lostAfter !== undefined);
      await stopped(job.name, job.mark);
    },
  );
});
