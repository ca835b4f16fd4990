import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError } from "@rollcall/errors";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { RUNS_WORK, WorkFixture } from "./testing/work-fixture.ts";

// Only root can run executions as another user.
const { describe: asRoot } = needsRoot();
const VALUE = "correct horse battery staple";

asRoot("secrets of a node", () => {
  let fixture: WorkFixture;
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "rollcall-secrets-"));
    const secrets = join(root, "secrets");
    await mkdir(secrets, { mode: 0o700 });
    for (const name of ["password", "unlisted"]) await writeFile(join(secrets, name), `${VALUE}\n`, { mode: 0o600 });
    const grants = "Work.SecretGrants=password=token:*/granted-* token:nobody-else/other";
    fixture = await WorkFixture.start();
    await fixture.startAgent("keeps", undefined, [...RUNS_WORK, "--set", `Work.Secrets=${secrets}`, "--set", grants]);
    await fixture.startAgent("plain");
  });

  afterAll(async () => {
    await fixture.dispose();
    await rm(root, { recursive: true });
  });

  const specOf = (name: string, secret: string) => {
    const value = { command: ["sh", "-c", "echo got $PASSWORD"], secretEnv: { PASSWORD: secret } };
    const task = { case: "process" as const, value };
    return { name, type: JobType.BATCH, count: 2, retry: { attempts: 0 }, task };
  };

  it("should reach only jobs whose owner and name they are granted to, on the granting node", async () => {
    await fixture.client.jobs.submitJob({ spec: specOf("granted-1", "password") });
    const ended = await until("the ends of the job", async () => {
      const all = await fixture.executions({ name: "granted-1" });
      return all.length === 2 && all.every(({ state }) => state === ExecutionState.COMPLETED) && all;
    });
    expect(ended.map(({ nodeId }) => nodeId)).toEqual(["keeps", "keeps"]);
    const logs = fixture.rollcall("job", "logs", "granted-1");
    expect(await logs.exit()).toBe(0);
    expect(logs.out).toContain(`got ${VALUE}`);
  });

  it.each([
    ["other", "password"],
    ["granted-2", "unlisted"],
    ["granted-3", "missing"],
  ])("should keep job %s with secret %s off all nodes, and say why", async (name, secret) => {
    const refused = await fixture.client.jobs.submitJob({ spec: specOf(name, secret) }).catch(describeError);
    expect(refused).toMatchObject({ reason: "JOB_FITS_NOWHERE", metadata: { SECRET_NOT_ALLOWED: "2" } });
    const plan = await fixture.client.jobs.planJob({ spec: specOf(name, secret) });
    expect(plan.refusals).toMatchObject([{ reason: "SECRET_NOT_ALLOWED", nodes: 2 }]);
    const queueTimeout = { seconds: 3600n };
    await fixture.client.jobs.submitJob({ spec: { ...specOf(name, secret), queueTimeout } });
    const why = fixture.rollcall("job", "why", name);
    expect(await why.exit()).toBe(0);
    expect(why.out.replaceAll(/\s+/g, " ")).toContain("2 of 2 nodes: the node's Work.SecretGrants do not allow");
    expect(await fixture.executions({ name })).toEqual([]);
  });

  it("should be shown with the node, without their values, even if no job can use them", async () => {
    const described = await until("all secrets to be reported", async () => {
      const command = fixture.rollcall("node", "describe", "keeps");
      expect(await command.exit()).toBe(0);
      return command.out.includes("unlisted") && command;
    });
    expect(described.out).toMatch(/^Secrets +password: token:\*\/granted-\*, token:nobody-else\/other$/m);
    expect(described.out).toMatch(/^ +unlisted: no job can use it: see Work\.SecretGrants of the node$/m);
    const whole = fixture.rollcall("node", "describe", "keeps", "-o", "json");
    expect(await whole.exit()).toBe(0);
    for (const { out } of [described, whole]) {
      expect(out).toContain("password");
      expect(out).not.toContain(VALUE);
    }
    const other = fixture.rollcall("node", "describe", "plain");
    expect(await other.exit()).toBe(0);
    expect(other.out).not.toContain("Secrets");
  });
});
