import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { ExecutionState } from "../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { FakeWorkers } from "../../services/scheduler/src/testing/fake-workers.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const over = new AbortController();
let working: Promise<void> | undefined;
// Before the control plane closes the record: hooks run in the order of their definition.
afterAll(async () => {
  over.abort();
  await working;
});
const rig = useControlPlane();
const NODES = ["n1", "n2"];
const WORK = {
  ...{ executors: ["process"], millicores: 4_000, memoryBytes: 8n * 1024n ** 3n, diskBytes: 1024n ** 4n },
  ...{ portMin: 20_000, portMax: 20_100 },
};
/** How often the machines look at what they should run. */
const LOOK_EVERY_MS = 50;
const LOOKS_A_BEAT = 20;

let workers: FakeWorkers;
/** Executions of these versions of jobs fail: "name version". */
const failing = new Set<string>();
const failed = new Set<string>();

beforeAll(async () => {
  const streams = await Promise.all(NODES.map((id) => rig.connect(id, { ...INFO, work: WORK })));
  workers = new FakeWorkers(rig.store);
  workers.fate = (id) => (failed.has(id) ? "FAILS" : "RUNS");
  working = (async () => {
    for (let look = 0; !over.signal.aborted; look += 1) {
      if (look % LOOKS_A_BEAT === 0) for (const stream of streams) stream.beat();
      const { executions } = await rig.client.jobs.listExecutions({ pageSize: 1_000 });
      for (const { id, job, version } of executions) if (failing.has(`${job} ${version}`)) failed.add(id);
      await workers.work(NODES);
      await sleep(LOOK_EVERY_MS);
    }
  })();
});

let name = "";
let jobs = 0;
beforeEach(() => {
  jobs += 1;
  name = `job-${jobs}`;
});

/** Write a service to a file. */
function service(version: number, rest = "update: {minReadyTime: 0s}"): string {
  const task = `process: {command: [sleep, "${version}"]}`;
  return write(`name: ${name}\ntype: service\ncount: 2\nresources: {cores: 0.1}\n${task}\n${rest}\nqueueTimeout: 1h\n`);
}

function batch(): string {
  return write(`name: ${name}\ntype: batch\nresources: {cores: 0.1}\nprocess: {command: [x]}\nretry: {attempts: 0}\n`);
}

function write(text: string): string {
  writeFileSync(join(rig.folder, `${name}.yaml`), text);
  return `${name}.yaml`;
}

/** Version 1 is ready, and the update to version 2 halts. */
async function halt(rest?: string) {
  failing.add(`${name} 2`);
  expect(await rig.run(`job run ${service(1, rest)}`)).toMatchObject({ code: 0 });
  return rig.run(`job run ${service(2, rest)}`);
}

describe("job revert", () => {
  it("should undo an update that halted, and follow the job until it is ready", async () => {
    const halted = await halt();
    expect(halted).toMatchObject({
      code: 1,
      err: expect.stringMatching(/its update halted at \d of 2: execution .* failed/),
    });
    const why = await rig.run(`job why ${name}`);
    expect(why.out.replace(/\s+/g, " ")).toContain(`to change that: rollcall job revert ${name}`);
    expect((await rig.run(`job describe ${name}`)).out).toMatch(/^Last ready +version 1$/m);
    const history = await rig.run(`job history ${name} -o csv`);
    expect(history.out).toMatch(/^2,[^,]*,[^,]*,2,,,\r$\n^1,[^,]*,[^,]*,2,[^,]+,,\r$/m);
    const reverted = await rig.run(`job revert ${name} -m sorry`);
    expect(reverted).toMatchObject({ code: 0 });
    expect(reverted.out).toMatch(new RegExp(`^Ok: ${name} reverted to version 1, as version 3\n${name}: 2 of 2 ready`));
    const after = await rig.run(`job history ${name} -o csv`);
    expect(after.out).toMatch(/^3,[^,]*,[^,]*,2,[^,]*,1,reverted to version 1 by token:[^ ]+: sorry\r$/m);
    const executions = await rig.client.jobs.listExecutions({ job: name, states: [ExecutionState.READY] });
    expect(executions.executions.map(({ version }) => version)).toEqual([1, 1]);
    const again = await rig.run(`job revert ${name} 1`);
    expect(again).toMatchObject({
      code: 0,
      out: "Ok\n",
      err: expect.stringMatching(/^nothing to change: job .* is at version 3/),
    });
    expect(await rig.run(`job revert ${name} 1 --strict`)).toMatchObject({ code: 1 });
    const unknown = await rig.run(`job revert ${name} 9`);
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining(`has no version 9; it has 1 to 3\nhint: `) });
    const answer = await rig.run(`job revert ${name} 2 --detach -o json`);
    expect(JSON.parse(answer.out)).toMatchObject({ revertedTo: 2, job: { version: 4, sameVersions: [2] } });
  });

  it("should be done by the policy, and be the result of the run that halted", async () => {
    const halted = await halt("update: {minReadyTime: 0s, autoRevert: true}");
    expect(halted.code).toBe(1);
    // Its watch may show the halt before the revert that follows.
    expect(halted.err).toMatch(
      /its update halted at|the update to version 2 halted, and version 3 undoes it: reverted to/,
    );
    expect(await rig.run(`job wait ${name}`)).toMatchObject({ code: 0 });
    expect((await rig.run(`job describe ${name}`)).out).toMatch(
      /^Reverted +automatically, since the update to version 2 halted$/m,
    );
  });

  it("should refuse a viewer", async () => {
    const token = await rig.createToken("viewer");
    const refused = await rig.run(`job revert ${name} --token ${token}`);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("submitter") });
  });
});

describe("job stop and job delete", () => {
  it("should stop what is chosen after a question, wait for its end, and delete it", async () => {
    const names: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      name = `chosen-${jobs}-${count}`;
      names.push(name);
      expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    }
    const line = `job stop ${names.join(" ")}`;
    const preview = await rig.run(`${line} --dry-run`);
    expect(preview.out).toMatch(/^JOB +TYPE +STATE +WANTED\nchosen-\d+-0 +service +ACTIVE +2\nchosen-/);
    const asked: string[] = [];
    const no = await rig.run(`${line} --wait`, {
      ask: async (question) => {
        asked.push(question);
        return "n";
      },
    });
    expect({ asked, code: no.code }).toEqual({ asked: ["stop 2 jobs? [y/N] "], code: 1 });
    expect(no.err).toContain("nothing was done");
    expect((await rig.run("job list --states active -o name")).out).toContain(names[0]);
    const yes = await rig.run(`${line} --wait -m enough`, { ask: async () => "y" });
    expect(yes.code).toBe(0);
    expect(yes.out).toMatch(/^JOB +OUTCOME\nchosen-\d+-0 +Ok\nchosen-\d+-1 +Ok\n/);
    for (const one of names) expect(yes.out).toContain(`${one} has ended\n`);
    const kept = await rig.run(`job delete ${names.join(" ")} nobody --yes -o json`);
    expect(kept.code).toBe(1);
    expect(JSON.parse(kept.out).jobs).toMatchObject(names.map((one) => ({ job: { spec: { name: one } } })));
    expect(kept.err).toMatch(/^failed to delete 1 of 3 jobs\nnobody: there is no job nobody\n/);
    expect(await rig.run(`job describe ${names[0]}`)).toMatchObject({ code: 1 });
  });

  it("should stop every active job of a type, and no other", async () => {
    expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    const stays = name;
    name = `batch-${jobs}`;
    expect(await rig.run(`job run ${batch()} --detach`)).toMatchObject({ code: 0 });
    const stopped = await rig.run("job stop --types batch --yes --wait -o name");
    expect(stopped).toMatchObject({ code: 0, out: `${name}\n` });
    expect((await rig.run("job list --states active -o name")).out).toContain(stays);
    expect(await rig.run("job stop --types ops --yes")).toMatchObject({ code: 0, err: "no job is chosen\n" });
  });

  it("should delete no job that is active, and say how to", async () => {
    expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    const refused = await rig.run(`job delete ${name}`);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain(`job ${name} is ACTIVE: stop it before it is deleted`);
    expect(refused.err).toContain(`hint: \`rollcall job stop ${name} --wait\` stops it`);
    expect(await rig.run(`job stop ${name} --wait`)).toMatchObject({ code: 0, out: `Ok\n${name} has ended\n` });
    expect(await rig.run("job delete --states completed,failed --yes")).toMatchObject({ code: 0 });
    expect(await rig.run(`job delete ${name} -m over`)).toEqual({ code: 0, out: "Ok\n", err: "" });
    expect(await rig.run(`job wait ${name}`)).toMatchObject({ code: 1 });
  });
});
