import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { ExecutionState } from "../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { readEvents } from "../../libs/store/src/index.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { FakeWorkers } from "../../services/scheduler/src/testing/fake-workers.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const over = new AbortController();
let working: Promise<void> | undefined;
// This hook must run before the control plane closes the store. Hooks run in the order of their definition.
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
/** The time in milliseconds between two reads of the machines' desired executions. */
const SCAN_EVERY_MS = 50;
const SCANS_PER_BEAT = 20;

let workers: FakeWorkers;
/** Job versions whose executions fail, as "name version". */
const failing = new Set<string>();
const failed = new Set<string>();

beforeAll(async () => {
  const streams = await Promise.all(NODES.map((id) => rig.connect(id, { ...INFO, work: WORK })));
  workers = new FakeWorkers(rig.store);
  workers.fate = (id) => (failed.has(id) ? "FAILS" : "RUNS");
  working = (async () => {
    for (let scan = 0; !over.signal.aborted; scan += 1) {
      if (scan % SCANS_PER_BEAT === 0) for (const stream of streams) stream.beat();
      const { executions } = await rig.client.jobs.listExecutions({ pageSize: 1_000 });
      for (const { id, job, version } of executions) if (failing.has(`${job} ${version}`)) failed.add(id);
      await workers.work(NODES);
      await sleep(SCAN_EVERY_MS);
    }
  })();
});

let name = "";
let jobs = 0;
beforeEach(() => {
  jobs += 1;
  name = `job-${jobs}`;
});

/** Write the spec of a service to a file. */
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

/** Run version 1 until it is ready, and halt the update to version 2. */
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
      err: expect.stringMatching(/update halted at \d of 2: execution .* failed/),
    });
    const why = await rig.run(`job why ${name}`);
    expect(why.out.replace(/\s+/g, " ")).toContain(`to change that: rollcall job revert ${name}`);
    expect((await rig.run(`job describe ${name}`)).out).toMatch(
      /^Last ready +version 1; `rollcall job revert \S+` returns to it$/m,
    );
    const restart = await rig.run(`job restart ${name}`);
    expect(restart).toMatchObject({ code: 1, out: "" });
    expect(restart.err).toContain(`hint: \`rollcall job revert ${name}\` returns to version 1; `);
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
      out: expect.stringMatching(/^Ok: job .* is at version 3/),
      err: "",
    });
    expect(await rig.run(`job revert ${name} 1 --strict`)).toMatchObject({ code: 1 });
    const unknown = await rig.run(`job revert ${name} 9`);
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining(`has no version 9; it has 1 to 3\nhint: `) });
    const answer = await rig.run(`job revert ${name} 2 --detach -o json`);
    expect(JSON.parse(answer.out)).toMatchObject({ revertedTo: 2, job: { version: 4, sameVersions: [2] } });
  });

  it("should not be needed to try an update that halted again: its file is submitted again", async () => {
    await halt();
    const restart = await rig.run(`job restart ${name}`);
    expect(restart.err).toContain("`rollcall job run` with its file tries version 2 again");
    const planned = await rig.run(`job run ${name}.yaml --dry-run`);
    expect(planned.out).toContain(`${name}: would become version 3\n`);
    const again = await rig.run(`job run ${name}.yaml`);
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining(`${name}: submitted version 3\n`) });
    expect((await rig.run(`job run ${name}.yaml --detach`)).out).toBe(`${name}: nothing to change, version 3\n`);
  });

  it("should be done by the policy, and be the result of the run that halted", async () => {
    const halted = await halt("update: {minReadyTime: 0s, autoRevert: true}");
    expect(halted.code).toBe(1);
    // The command's watch may show the halt before the revert that follows.
    expect(halted.err).toMatch(
      /update halted at|the update to version 2 halted, and version 3 reverted it: reverted to/,
    );
    expect(await rig.run(`job wait ${name}`)).toMatchObject({ code: 0 });
    expect((await rig.run(`job describe ${name}`)).out).toMatch(
      /^Reverted +automatically, because the update to version 2 halted$/m,
    );
  });

  it("should refuse a viewer", async () => {
    const token = await rig.createToken("viewer");
    const refused = await rig.run(`job revert ${name} --token ${token}`);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("submitter") });
  });
});

describe("job run and job wait", () => {
  const rolled = async () => (await rig.client.jobs.getJob({ name })).job?.rolledOut;

  it("should return when all of a service was ready for minReadyTime, also after a restart and scaling", async () => {
    const slowly = "update: {minReadyTime: 1s, maxParallel: 2}";
    for (const version of [1, 2]) {
      const run = await rig.run(`job run ${service(version, slowly)}`);
      expect({ ...run, rolled: await rolled() }).toMatchObject({ code: 0, rolled: true });
      expect(run.err).toContain(`${name}: 2 of 2 ready, but not yet for update.minReadyTime\n`);
    }
    for (const change of [`job restart ${name}`, `job scale ${name} 3`]) {
      expect(await rig.run(change)).toMatchObject({ code: 0 });
      expect(await rolled()).toBe(false);
      expect(await rig.run(`job wait ${name}`)).toMatchObject({ code: 0 });
      expect(await rolled()).toBe(true);
    }
    const { events } = await readEvents(rig.store.db, { after: 0n, limit: 1_000, subject: name });
    expect(events.filter(({ reason }) => reason === "JOB_ROLLED_OUT")).toHaveLength(4);
    expect(await rig.run(`job scale ${name} 0`)).toMatchObject({ code: 0 });
    expect(await rig.run(`job wait ${name}`)).toMatchObject({ code: 0 });
  });
});

describe("job stop and job delete", () => {
  it("should stop selected jobs after a question, wait for their end, and delete them", async () => {
    const names: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      name = `chosen-${jobs}-${count}`;
      names.push(name);
      expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    }
    const line = `job stop ${names.join(" ")}`;
    const preview = await rig.run(`${line} --dry-run`);
    expect(preview.out).toMatch(/^JOB +TYPE +STATE +WANTED +OUTCOME\nchosen-\d+-0 +service +ACTIVE +2 +Ok\nchosen-/);
    const asked: string[] = [];
    const no = await rig.run(`${line} --wait`, {
      ask: async (question) => {
        asked.push(question);
        return "n";
      },
    });
    expect({ asked, code: no.code }).toEqual({ asked: ["stop 2 jobs? [y/N] "], code: 1 });
    expect(no.err).toContain("nothing was changed");
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

  it("should refuse in a dry run what the command itself would refuse, and change nothing", async () => {
    name = `rehearsed-${jobs}`;
    expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    const missing = `rehearsd-${jobs}`;
    const ghost = await rig.run(`job stop ${missing} --dry-run`);
    expect(ghost).toMatchObject({ code: 1, err: expect.stringMatching(/^failed to stop 1 of 1 job\n/) });
    expect(ghost.out).toContain(`there is no job ${missing}; did you mean ${name}?`);
    const active = await rig.run(`job delete ${name} --dry-run`);
    expect(active).toMatchObject({ code: 1, out: expect.stringContaining(`job ${name} is ACTIVE: stop it before`) });
    expect(await rig.run(`job delete ${name} ${missing} --dry-run -o json`)).toMatchObject({
      ...{ code: 1, out: expect.stringMatching(/"jobs": \[\]/) },
      err: expect.stringMatching(/^failed to delete 2 of 2 jobs\n/),
    });
    const stopping = await rig.run(`job stop ${name} --dry-run`);
    expect(stopping).toMatchObject({ code: 0, out: expect.stringMatching(/ACTIVE +2 +Ok\n$/), err: "" });
    const { out: ids } = await rig.run(`job executions ${name} -o name --states ready`);
    const [execution = ""] = ids.split("\n");
    expect(await rig.run(`job stop --execution ${execution} --dry-run`)).toEqual({
      ...{ code: 0, out: `Ok: ${execution} would stop\n`, err: "" },
    });
    expect(await rig.run(`job stop --execution ${execution}x --dry-run`)).toMatchObject({ code: 1, out: "" });
    expect((await rig.run(`job executions ${name} -o name --states ready`)).out).toBe(ids);
    expect(await rig.run(`job stop ${name} --wait`)).toMatchObject({ code: 0 });
    const stopped = await rig.run(`job stop ${name} --dry-run`);
    expect(stopped).toMatchObject({ code: 0, out: expect.stringContaining("nothing to change") });
    expect(await rig.run(`job stop ${name} --dry-run --strict`)).toMatchObject({ code: 1 });
    expect(await rig.run(`job delete ${name} --dry-run --etag x`)).toMatchObject({ code: 1 });
    expect(await rig.run(`job delete ${name} --dry-run`)).toMatchObject({ code: 0 });
    expect(await rig.run(`job delete ${name}`)).toMatchObject({ code: 0 });
  });

  it("should refuse a request id that was used for another job, and repeat the first answer", async () => {
    const first = name;
    expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    name = `${name}-other`;
    expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    const id = `stop-${name}`;
    for (const _ of ["once", "again"]) {
      const answer = await rig.run(`job stop ${first} --request-id ${id}`);
      expect(answer).toEqual({ code: 0, out: `Ok: ${first} is stopping\n`, err: "" });
    }
    const reused = await rig.run(`job stop ${name} --request-id ${id}`);
    expect(reused).toMatchObject({ code: 1, out: "" });
    expect(reused.err).toContain(`request id ${id} was already used for another StopJob request`);
    expect(reused.err).toContain("hint: ");
    const active = async () => (await rig.run("job list --states active -o name")).out.split("\n");
    expect(await active()).toContain(name);
    // Repeat the command with the same request id. Its selection can be smaller the second time, but its jobs still
    // have the ids of the first time.
    const selected = `--types service --yes --request-id ${id}-all`;
    for (const _ of ["once", "again"]) expect(await rig.run(`job stop ${selected}`)).toMatchObject({ code: 0 });
    expect(await active()).not.toContain(name);
  });

  it("should stop every active job of a type, and no other", async () => {
    expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    const stays = name;
    name = `batch-${jobs}`;
    expect(await rig.run(`job run ${batch()} --detach`)).toMatchObject({ code: 0 });
    const stopped = await rig.run("job stop --types batch --yes --wait -o name");
    expect(stopped).toMatchObject({ code: 0, out: `${name}\n` });
    expect((await rig.run("job list --states active -o name")).out).toContain(stays);
    expect(await rig.run("job stop --types ops --yes")).toMatchObject({ code: 0, err: "no jobs match\n" });
  });

  it("should refuse to delete an active job, and say how to", async () => {
    expect(await rig.run(`job run ${service(1)}`)).toMatchObject({ code: 0 });
    const refused = await rig.run(`job delete ${name}`);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain(`job ${name} is ACTIVE: stop it before you delete it`);
    expect(refused.err).toContain(`hint: \`rollcall job stop ${name} --wait\` stops it`);
    expect(await rig.run(`job stop ${name} --wait`)).toMatchObject({
      code: 0,
      out: `Ok: ${name} is stopping\n${name} has ended\n`,
    });
    expect(await rig.run("job delete --states completed,failed --yes")).toMatchObject({ code: 0 });
    expect(await rig.run(`job delete ${name} -m over`)).toEqual({ code: 0, out: `Ok: ${name} deleted\n`, err: "" });
    expect(await rig.run(`job wait ${name}`)).toMatchObject({ code: 1 });
  });
});
