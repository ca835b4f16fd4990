import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { HoldKind, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ExecutionState, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { endProcess } from "./testing/rollcall-process.ts";
import { WorkFixture } from "./testing/work-fixture.ts";

// Only root can run executions as another user.
const { describe: asRoot } = needsRoot();

asRoot("work on machines that come and go", () => {
  let fixture: WorkFixture;

  beforeAll(async () => {
    fixture = await WorkFixture.start();
    for (const name of ["alpha", "beta", "gamma"]) await fixture.startAgent(name);
  });

  afterAll(() => fixture.dispose());

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
    expect(await fixture.executions({ name })).toMatchObject([
      { state: ExecutionState.FAILED, reason: "EXITED", observation: { exitCode: 7 } },
    ]);
  });

  it("should kill and report an execution that uses more memory than it was granted", async () => {
    const command = ["sh", "-c", 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); sleep 5'];
    const name = `oom-${randomUUID().slice(0, 8)}`;
    await fixture.client.jobs.submitJob({
      spec: {
        ...{ name, type: JobType.BATCH, retry: { attempts: 0 }, resources: { memoryBytes: 50_000_000n } },
        task: { case: "process", value: { command } },
      },
    });
    await until(`the end of ${name}`, async () => {
      return (await fixture.executions({ name })).some(({ state }) => state === ExecutionState.KILLED_OOM);
    });
  });

  it("should move and restart nothing while an agent is restarted or its keeper killed", async () => {
    const job = fixture.service({ count: 20, selector: "", constraints: { node: "alpha" } });
    await job.submit();
    const before = await fixture.ready(job, 20);
    const pids = await fixture.running(job);
    expect(pids).toHaveLength(20);
    expect(await fixture.agent("alpha").killed("SIGTERM")).toBe(0);
    await fixture.client.becomes("alpha", "APPROVED DISCONNECTED HEALTHY");
    await fixture.startAgent("alpha");
    for (const pid of await fixture.keepers("alpha")) endProcess(pid);
    await until("the executions to be reported again", async () => {
      const after = await fixture.executions(job);
      return after.length === 20 && after.every(({ state }) => state === ExecutionState.READY);
    });
    expect((await fixture.executions(job)).map(({ id }) => id).sort()).toEqual(before.map(({ id }) => id).sort());
    expect(await fixture.running(job)).toEqual(pids);
    await fixture.stopped(job);
  });

  it("should run a command from the command line: its output, its exit code, and what it wrote afterwards", async () => {
    const command = ["sh", "-c", "echo said; echo complained >&2; exit 5"];
    const ran = fixture.rollcall("run", "--name", "once", "--", ...command);
    expect(await ran.exit()).toBe(5);
    expect(ran.out).toBe("said\n");
    expect(ran.err).toMatch(/^complained$/m);
    const logs = fixture.rollcall("job", "logs", "once");
    expect([await logs.exit(), logs.out, logs.err]).toEqual([0, "said\n", "complained\n"]);
  });

  it("should wait for a check that fails for longer than its failures, at startup and in an update", async () => {
    const name = `slow-${randomUUID().slice(0, 8)}`;
    const signs = [1, 2].map((version) => join(tmpdir(), `${name}-${version}`));
    const submit = (sign: string) => {
      const check = {
        probe: { case: "command" as const, value: { command: ["test", "-e", sign] } },
        ...{ interval: { seconds: 1n }, failures: 1 },
      };
      const task = { case: "process" as const, value: { command: ["sleep", "1000"], env: { SIGN: sign } } };
      return fixture.client.jobs.submitJob({ spec: { name, type: JobType.SERVICE, count: 1, task, check } });
    };
    try {
      for (const [index, sign] of signs.entries()) {
        await submit(sign);
        const tried = await until("tries that fail", async () => {
          return (await fixture.executions({ name })).find(({ version, observation }) => {
            return version === index + 1 && observation?.message.includes("check failed once");
          });
        });
        await writeFile(sign, "");
        const ready = await until("the execution to be ready", async () => {
          return (await fixture.executions({ name })).find(({ id, state }) => {
            return id === tried.id && state === ExecutionState.READY;
          });
        });
        expect(ready.attempt).toBe(0);
        const { job } = await fixture.client.jobs.getJob({ name });
        expect(job?.state).toBe(JobState.ACTIVE);
        expect(job?.update?.halted ?? false).toBe(false);
      }
    } finally {
      for (const sign of signs) await rm(sign, { force: true });
      await fixture.client.jobs.stopJob({ name });
    }
  });

  it("should revert to the ready version when the next one fails, as the running processes show", async () => {
    const update = { minReadyTime: { seconds: 2n }, autoRevert: true };
    const job = fixture.service({ update, queueTimeout: { seconds: 300n } });
    await job.submit();
    await fixture.ready(job);
    await until("version 1 to be ready for long enough", async () => {
      return (await fixture.client.jobs.getJob({ name: job.name })).job?.readyVersion === 1;
    });
    const task = { case: "process" as const, value: { command: ["sh", "-c", "exit 3"] } };
    await fixture.client.jobs.submitJob({ spec: { name: job.name, type: JobType.SERVICE, count: 1, update, task } });
    const reverted = await until("the revert", async () => {
      const { job: seen } = await fixture.client.jobs.getJob({ name: job.name });
      return seen?.readyVersion === 3 && seen;
    });
    expect(reverted).toMatchObject({ version: 3, undoneVersion: 2, sameVersions: [1], executions: { ready: 1 } });
    expect(await fixture.running(job)).toHaveLength(1);
    await fixture.stopped(job);
  });

  it("should keep executions on a node that is held for flapping, and place nothing new there", async () => {
    await fixture.startAgent("flapper");
    const values = {
      ...{ heartbeatInterval: { seconds: 1n }, unhealthyAfter: { seconds: 5n } },
      ...{ unknownAfter: { seconds: 600n }, flappingHold: { seconds: 600n } },
    };
    const scope = { scope: { case: "node", value: "flapper" } } as const;
    await fixture.client.policies.setHealthPolicy({ scope, values });
    const job = fixture.service({
      ...{ constraints: { node: "flapper" }, loss: { lostAfter: { seconds: 3600n } } },
      // Let the job wait for a node, because the scheduler may not have read yet that the node can take work.
      queueTimeout: { seconds: 300n },
    });
    await job.submit();
    const [before] = await fixture.ready(job);
    const pids = await fixture.running(job);
    for (let outage = 0; outage < 3; outage += 1) {
      fixture.agent("flapper").kill("SIGSTOP");
      await fixture.client.becomes("flapper", "APPROVED DISCONNECTED UNHEALTHY");
      fixture.agent("flapper").kill("SIGCONT");
      await fixture.client.becomes("flapper", "APPROVED CONNECTED HEALTHY");
    }
    await until("the hold", async () => {
      const { scheduling } = (await fixture.client.node("flapper")) ?? {};
      return scheduling?.holds.some(({ kind }) => kind === HoldKind.FLAPPING);
    });
    const [after] = await fixture.ready(job);
    expect(after).toMatchObject({ id: before?.id, state: ExecutionState.READY, reason: "" });
    expect(await fixture.running(job)).toEqual(pids);
    const next = fixture.service({ constraints: { node: "flapper" } });
    await expect(next.submit()).rejects.toThrow("held for flapping");
    await fixture.stopped(job);
  });

  it("should move a service off a drained node, and report when that is done", async () => {
    const job = fixture.service({ selector: "" });
    await job.submit();
    const [first] = await fixture.ready(job);
    const from = first?.nodeId ?? "";
    const drain = fixture.rollcall("node", "drain", from, "--deadline", "5m");
    expect([await drain.exit(), drain.err]).toEqual([0, expect.any(String)]);
    const [second] = await fixture.ready(job);
    expect([second?.previousId, second?.nodeId === from]).toEqual([first?.id, false]);
    await until("one process", async () => (await fixture.running(job)).length === 1);
    expect((await fixture.client.node(from))?.scheduling?.state).toBe(SchedulingState.DRAINED);
    expect(await fixture.rollcall("node", "undrain", from).exit()).toBe(0);
    expect((await fixture.client.node(from))?.mayTakeWork).toBe(true);
    await fixture.stopped(job);
  });

  it.each([
    ["was killed", "SIGKILL", undefined],
    ["froze", "SIGSTOP", undefined],
    ["was killed", "SIGKILL", { seconds: 600n }],
    ["froze", "SIGSTOP", { seconds: 600n }],
  ] as const)(
    "should leave one execution when the node whose agent %s (%s) returns, with lostAfter %j",
    async (_, signal, lostAfter) => {
      const job = fixture.service(lostAfter === undefined ? {} : { loss: { lostAfter } });
      await job.submit();
      const [first] = await fixture.ready(job);
      const lost = first?.nodeId ?? "";
      const agent = fixture.agent(lost);
      agent.kill(signal);
      await until(`${lost} to be evaluated`, async () => {
        const found = (await fixture.executions(job)).find(({ id }) => id === first?.id);
        return found?.state === ExecutionState.LOST || found?.replacedById !== "";
      });
      if (lostAfter === undefined) {
        const [second] = await fixture.ready(job);
        expect([second?.previousId, second?.nodeId === lost]).toEqual([first?.id, false]);
        expect(await fixture.running(job)).toHaveLength(2);
      } else {
        expect(await fixture.running(job)).toHaveLength(1);
      }
      if (signal === "SIGSTOP") agent.kill("SIGCONT");
      else await fixture.startAgent(lost);
      await fixture.client.becomes(lost, "APPROVED CONNECTED HEALTHY");
      const survivor = await fixture.survivor(job);
      expect(survivor?.id === first?.id).toBe(lostAfter !== undefined);
      await fixture.stopped(job);
    },
  );
});
