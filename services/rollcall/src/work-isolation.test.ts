import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { processesOf } from "./testing/processes.ts";
import { RollcallProcess } from "./testing/rollcall-process.ts";
import { WorkFixture } from "./testing/work-fixture.ts";

// Only root can assign user ids.
const { describe: asRoot } = needsRoot();

asRoot("executions that are kept apart", () => {
  let fixture: WorkFixture;

  beforeAll(async () => {
    fixture = await WorkFixture.start();
    await fixture.startAgent("apart", undefined, ["--executors", "process"]);
  });

  afterAll(() => fixture.dispose());

  async function submit(name: string, script: string, pids = 0): Promise<void> {
    const value = { command: ["sh", "-c", script] };
    const spec = { name, type: JobType.SERVICE, count: 1, resources: { pids }, retry: { attempts: 0 } };
    await fixture.client.jobs.submitJob({ spec: { ...spec, task: { case: "process", value } } });
    await until(`${name} to run`, async () => {
      return (await fixture.executions({ name })).some(({ state }) => state === ExecutionState.READY);
    });
  }

  it("should be shown with the node", async () => {
    const described = fixture.rollcall("node", "describe", "apart");
    expect(await described.exit()).toBe(0);
    expect(described.out).toMatch(/^Isolation +each execution has its own user id/m);
    expect(described.out).toMatch(/all processes of an execution end with it/);
    expect(described.out).toMatch(/limits on .*pids/);
  });

  it("should end with their daemons when their job is stopped", async () => {
    // Use a sleep duration that no other process uses, to recognize the processes.
    const length = `${randomInt(1_000_000, 2_000_000)}`;
    await submit("daemons", `setsid sleep ${length} & (env -i setsid sleep ${length} &) ; sleep 1000`);
    await until("the daemons", async () => (await processesOf(`sleep ${length}`)).length >= 2);
    expect(await fixture.rollcall("job", "stop", "daemons").exit()).toBe(0);
    await until("their end", async () => {
      const left = await processesOf(`sleep ${length}`);
      return left.length === 0;
    });
  });

  it("should have their number of processes limited by their job", async () => {
    const length = `${randomInt(2_000_000, 3_000_000)}`;
    const script = `for i in $(seq 100); do (sleep ${length} &); done 2>/dev/null; sleep 1000`;
    await submit("bounded", script, 30);
    const count = async () =>
      (await processesOf(`sleep ${length}`)).filter(({ command }) => !command.includes("sh -c"));
    await until("its processes", async () => (await count()).length > 10);
    expect((await count()).length).toBeLessThanOrEqual(30);
    expect(await fixture.rollcall("job", "stop", "bounded").exit()).toBe(0);
    await until("their end", async () => (await count()).length === 0);
  });

  it("should not run as a user whose groups have the rights of root", async () => {
    const state = await mkdtemp(join(tmpdir(), "rollcall-closed-groups-"));
    const words = ["--server", "127.0.0.1:1", "--state-dir", state, "--executors", "process"];
    const agent = new RollcallProcess(["agent", ...words, "--set", "Work.Users=root"]);
    expect(await agent.exit()).toBe(2);
    expect(agent.err).toContain("Work.Users: root belongs to the group root");
    await rm(state, { recursive: true });
  });
});
