import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { getNode } from "../../libs/store/src/index.ts";
import type { Outcome } from "../../services/cli/src/testing/run.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { FakeWorkers, type Fate } from "../../services/scheduler/src/testing/fake-workers.ts";
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

beforeAll(async () => {
  const streams = await Promise.all(NODES.map((id) => rig.connect(id, { ...INFO, work: WORK })));
  workers = new FakeWorkers(rig.store);
  working = (async () => {
    for (let scan = 0; !over.signal.aborted; scan += 1) {
      if (scan % SCANS_PER_BEAT === 0) for (const stream of streams) stream.beat();
      await workers.work(NODES);
      await sleep(SCAN_EVERY_MS);
    }
  })();
});
beforeEach(() => {
  workers.fate = () => "RUNS";
});

const SERVICE = `name: web
type: service
count: 2
resources: {cores: 0.5, memory: 256Mi, ports: {http: dynamic}}
process: {command: [python3, -m, http.server, "$PORT_HTTP"]}
update: {minReadyTime: 0s}
queueTimeout: 1h
`;

function file(name: string, text: string): string {
  writeFileSync(join(rig.folder, name), text);
  return name;
}

/** Submit a service under another name, and wait until it is ready. */
async function started(name: string, text = SERVICE): Promise<void> {
  const path = file(`${name}.yaml`, text.replace("name: web", `name: ${name}`));
  expect(await rig.run(`job run ${path}`)).toMatchObject({ code: 0 });
}

describe("job run", () => {
  it("should submit the job of a file, and follow it until it is ready", async () => {
    const { code, out } = await rig.run(`job run ${file("web.yaml", SERVICE)} -m first`);
    expect({ code, out }).toEqual({ code: 0, out: "web: submitted version 1\nweb: 2 of 2 ready\n" });
    const again = await rig.run("job run web.yaml -o json");
    expect(again.code).toBe(0);
    expect(JSON.parse(again.out)).toMatchObject({ jobs: [{ changed: false, job: { version: 1 } }] });
    const changed = await rig.run("job run -", { input: SERVICE.replace("0.5", "0.25") });
    expect(changed.code).toBe(0);
    // The last execution of the previous version may still be stopping.
    expect(changed.out).toMatch(/^web: submitted version 2\nweb: 2 of 2 ready(, 1 stopping)?\n$/);
    expect((await rig.run("job history web -o csv")).out).toMatch(/^version,.*\r\n2,.*\r\n1,.*,2,[^,]*,,first\r\n$/);
    const listed = await rig.run("job list --states active --types service");
    expect(listed.out).toMatch(/^NAME .*\nweb +service +active +2 +2 +2 /);
    const described = await rig.run("job status web");
    expect(described.out).toMatch(/^web {2}service {2}active/);
    expect(described.out).toContain("python3 -m http.server $PORT_HTTP");
    expect(described.out).toMatch(/ready +http=20\d{3}/);
    expect((await rig.run("node list --show work -o csv")).out).toMatch(/^n1,.*,HEALTHY,3750,8321499136,0,1\r$/m);
    expect((await rig.run("node summary")).out).toMatch(/^Executions: +2$/m);
    expect((await rig.run("job executions web --states ready -o name")).out.split("\n")).toHaveLength(3);
  });

  it("should print where each execution would be placed, and submit nothing", async () => {
    const { code, out } = await rig.run(
      `job run --dry-run ${file("big.yaml", SERVICE.replace("0.5", "900").replace("web", "big"))}`,
    );
    expect(code).toBe(0);
    expect(out).toMatch(/^big: would become version 1\n {2}2 would wait\n {2}2 of 2 nodes: /);
    expect(await rig.run("job describe big")).toMatchObject({
      code: 1,
      err: expect.stringContaining("`rollcall job list` shows all jobs"),
    });
  });

  it("should report every problem of a file with its lines, found by the command or the control plane", async () => {
    const typed = await rig.run(`job run ${file("bad.yaml", SERVICE.replace("count", "cuont"))}`);
    expect(typed).toEqual({ code: 2, out: "", err: "bad.yaml:3:1: cuont: unknown key; did you mean count?\n" });
    const text = `${SERVICE.replace("name: web", "name: -web")}check: {http: {port: ssh}}\n`;
    const refused = await rig.run(`job run ${file("bad.yaml", text)}`);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(/^failed to submit job -web:\nbad\.yaml:1:7: name: /);
    expect(refused.err).toMatch(/^bad\.yaml:8:22: check\.http\.port: /m);
    expect((await rig.run("job run nowhere.yaml")).err).toMatch(
      /^cannot read nowhere\.yaml: no such file or directory/,
    );
  });

  it("should run several jobs of one file, and not wait with --detach", async () => {
    const batch = "name: one\ntype: batch\nprocess: {command: [x]}\n";
    const text = `${batch}---\n${batch.replace("one", "two")}`;
    const { code, out } = await rig.run(`job run --detach -o name ${file("both.yaml", text)}`);
    expect({ code, out }).toEqual({ code: 0, out: "one\ntwo\n" });
    // Stop the batch jobs, because a drain would wait for them until its deadline.
    for (const name of ["one", "two"]) expect(await rig.run(`job stop ${name}`)).toMatchObject({ code: 0 });
  });

  it.each([
    ["it fits nowhere", SERVICE.replace("0.5", "900").replace("queueTimeout: 1h\n", ""), ""],
    ["its etag is not the job's", SERVICE, "--etag other"],
  ])("should fail a dry run of a job that would be refused since %s", async (_, text, flags) => {
    const path = file("refused.yaml", text.replace("name: web", "name: refused"));
    const submission = `job run ${flags} ${path}`.replace(/ +/g, " ");
    const dry = await rig.run(submission.replace("job run", "job run --dry-run"));
    expect(dry).toMatchObject({ code: 1, out: expect.stringMatching(/^refused: would become version 1\n/) });
    const real = await rig.run(submission);
    expect(real.code).toBe(1);
    const why = /^failed to submit job refused: (.*)/.exec(real.err)?.[1] ?? "no refusal";
    expect(dry.err).toBe(`job refused would be refused: ${why}\n`);
  });
});

describe("the result of a job", () => {
  /** The name of the current test's job. Each test has its own job, so that it does not see the jobs of other tests. */
  let name = "";
  let jobs = 0;
  beforeEach(() => {
    jobs += 1;
    name = `ends-${jobs}`;
  });
  afterEach(async () => {
    await rig.run(`job stop ${name}`);
  });

  const jobFile = (type: string, job = name) =>
    file(
      `${job}.yaml`,
      `name: ${job}\ntype: ${type}\nretry: {attempts: 0}\nresources: {cores: 0.1}\nprocess: {command: [x]}\n`,
    );

  /** Set how executions end, once a command has printed this text. */
  const fateOnce = (said: string, fate: Fate) => (all: string) => {
    if (all.includes(said)) workers.fate = () => fate;
  };

  it.each<[string, Fate, number, RegExp]>([
    ["batch", "COMPLETES", 0, /^ends-\d+: completed\n$/],
    ["batch", "FAILS", 1, /^job ends-\d+: failed: .*\n {2}execution \w+ on node n\d failed: exited, exit code 1\n/m],
    ["batch", "RUNS_OUT_OF_MEMORY", 1, /killed: out of memory/],
    ["ops", "COMPLETES", 0, /^ends-\d+: completed\n$/],
    ["ops", "FAILS", 1, /exit code 1/],
    ["service", "RUNS", 0, /^ends-\d+: 1 of 1 ready\n$/],
    ["service", "FAILS", 1, /^job ends-\d+: replica 0 failed once\n/m],
    ["daemon", "RUNS", 0, /^ends-\d+: 2 of 2 ready\n$/],
    ["daemon", "FAILS", 1, /^job ends-\d+: replica \d failed once\n/m],
  ])("should be the exit code of `job run` and `job wait`: a %s that %s gives %i", async (type, fate, code, said) => {
    workers.fate = () => fate;
    const ran = await rig.run(`job run -o name ${jobFile(type)}`);
    expect(ran).toMatchObject({ code, out: `${name}\n` });
    expect(ran.err).toMatch(new RegExp(said.source.replace(/^\^|\$$/g, ""), "m"));
    const waited = await rig.run(`job wait ${name}`);
    expect(waited.code).toBe(code);
    expect(code === 0 ? waited.out : waited.err).toMatch(said);
  });

  it("should be waited for while the job still runs", async () => {
    const path = jobFile("batch");
    expect(await rig.run(`job run --detach ${path}`)).toMatchObject({ code: 0, out: `${name}: submitted version 1\n` });
    const runs = `${name}: 0 of 1 completed, 1 running`;
    const { code, out } = await rig.run(`job wait ${name}`, { onError: fateOnce(runs, "COMPLETES") });
    expect({ code, out }).toEqual({ code: 0, out: `${name}: completed\n` });
    workers.fate = () => "RUNS";
    // Results from before the job was submitted again must not count.
    const again = await rig.run(`job run ${path}`, { onError: fateOnce(runs, "FAILS") });
    expect(again.code).toBe(1);
  });

  it.each([
    ["COMPLETES", "completed", 0],
    ["FAILS", "failed", 1],
  ] as const)("should stay what it is where a job that %s is stopped", async (fate, state, code) => {
    workers.fate = () => fate;
    expect(await rig.run(`job run ${jobFile("batch")}`)).toMatchObject({ code });
    const ended = `job ${name} has already ended: it is ${state}\n`;
    const stop = await rig.run(`job stop ${name}`);
    expect(stop).toEqual({ code: 0, out: `Ok: ${ended}`, err: "" });
    expect(await rig.run(`job stop ${name} --strict`)).toMatchObject({ code: 1, err: expect.stringContaining(ended) });
    const again = expect.stringContaining(`has already ended: it is ${state}; submit it again to run it again`);
    expect(await rig.run(`job scale ${name} 2`)).toMatchObject({ code: 1, out: "", err: again });
    expect(await rig.run(`job restart ${name}`)).toMatchObject({ code: 1, out: "", err: again });
    expect(await rig.run(`job wait ${name}`)).toMatchObject({ code });
    expect((await rig.run(`job list --states ${state.toLowerCase()} -o name`)).out).toContain(`${name}\n`);
  });

  it("should name no execution of an earlier version or run as its cause", async () => {
    workers.fate = () => "FAILS";
    expect(await rig.run(`job run ${jobFile("batch")}`)).toMatchObject({ code: 1 });
    workers.fate = () => "RUNS";
    let stop: Promise<Outcome> | undefined;
    const stopped = await rig.run(`job run ${jobFile("batch")}`, {
      onError: (all) => {
        if (all.includes("1 running")) stop ??= rig.run(`job stop ${name}`);
      },
    });
    await stop;
    expect(stopped).toMatchObject({ code: 1, err: expect.stringMatching(/: stopped\n$/) });
    expect(await rig.run(`job wait ${name}`)).toEqual({ code: 1, out: "", err: `job ${name}: stopped\n` });
    const nowhere = `name: ${name}\ntype: batch\nselector: zone=nowhere\nqueueTimeout: 1s\nprocess: {command: [x]}\n`;
    const unplaced = await rig.run(`job run ${file("nowhere.yaml", nowhere)}`);
    expect(unplaced).toMatchObject({ code: 1, err: expect.stringContaining(`job ${name}: failed: `) });
    expect(unplaced.err).not.toMatch(/execution \S+ on node/);
  });

  it("should be that of all jobs that are followed", async () => {
    const other = `${name}-other`;
    const files = [jobFile("batch", other), jobFile("batch")];
    workers.fate = () => "COMPLETES";
    expect((await rig.run(`job run ${files.join(" ")}`)).code).toBe(0);
    workers.fate = () => "FAILS";
    await rig.run(`job run ${files[0]}`);
    const { code, out, err } = await rig.run(`job wait ${other} ${name}`);
    expect({ code, out }).toEqual({ code: 1, out: `${name}: completed\n` });
    expect(err).toContain(`job ${other}: failed`);
  });

  it.each([
    ["is stopped", () => `job stop ${name}`, "stopped\n"],
    [
      "gets another version",
      () => `job run --detach ${file("newer.yaml", `name: ${name}\ntype: batch\nprocess: {command: [y]}\n`)}`,
      "version 2 was submitted while version 1 was followed\n",
    ],
  ])("should be a failure where the job %s", async (_, lineOf, said) => {
    let other: Promise<Outcome> | undefined;
    const { code, err } = await rig.run(`job run ${jobFile("batch")}`, {
      onError: (all) => {
        if (all.includes("1 running")) other ??= rig.run(lineOf());
      },
    });
    expect(await other).toMatchObject({ code: 0 });
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(`job ${name}: ${said}`) });
  });

  it("should be a failure for an unknown job", async () => {
    const { code, err } = await rig.run("job wait nothing");
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("there is no job nothing") });
  });
});

describe("job scale, restart and stop", () => {
  it("should change the job", async () => {
    await started("small");
    expect(await rig.run("job scale small 1")).toMatchObject({ code: 0, out: "Ok: small scaled to 1\n" });
    expect(await rig.run("job scale small 1")).toMatchObject({ code: 0, out: "Ok: small already has a count of 1\n" });
    expect(await rig.run("job scale small 1 -o name")).toEqual({
      code: 0,
      out: "small\n",
      err: "nothing to change: small already has a count of 1\n",
    });
    expect(await rig.run("job restart small")).toMatchObject({ code: 0, out: "Ok: small is restarting\n" });
    const { out } = await rig.run("job executions small -o name --states ready");
    const [execution = ""] = out.split("\n");
    expect(await rig.run(`job why ${execution}`)).toMatchObject({ code: 0 });
    const one = await rig.run(`job stop --execution ${execution}`);
    expect(one).toMatchObject({ code: 0, out: `Ok: ${execution} is stopping\n` });
    expect(await rig.run("job stop small -m enough")).toEqual({ code: 0, out: "Ok: small is stopping\n", err: "" });
    const again = await rig.run("job stop small");
    expect(again).toMatchObject({ code: 0, out: expect.stringMatching(/^Ok: job small .*\n$/) });
    expect(await rig.run("job stop small --strict")).toMatchObject({ code: 1 });
    const scaled = await rig.run("job scale small 2");
    expect(scaled).toMatchObject({ code: 1, err: expect.stringContaining("`rollcall job run` with its file") });
    expect(await rig.run("job adopt 0123456789")).toMatchObject({ code: 1 });
  });

  it("should accept the beginning of an execution's id in commands for people, and only the whole id elsewhere", async () => {
    await started("single", SERVICE.replace("count: 2", "count: 1"));
    const { out } = await rig.run("job executions single -o name --states ready");
    const [execution = ""] = out.split("\n");
    const prefix = execution.slice(0, 24);
    expect(await rig.run(`job why ${prefix}`)).toMatchObject({ code: 0, out: expect.stringContaining(execution) });
    for (const line of [`job why ${prefix} -o json`, `job stop --execution ${prefix}`, `job adopt ${prefix}`]) {
      const { code, err } = await rig.run(line);
      expect([line, code]).toEqual([line, 1]);
      expect(err).toContain(`execution ${prefix} not found; did you mean ${execution}?`);
    }
    for (const line of [`job stop --execution ${prefix}`, `job why ${prefix}`, `job adopt ${prefix}`]) {
      const { out: offered } = await rig.run(["__complete", ...line.split(" ")]);
      expect(offered).toContain(`${execution}\texecution\n`);
    }
    await rig.run("job stop single");
  });

  it.each([
    ["job stop", "name the jobs, or select them with --types or --all"],
    ["job stop web --execution x", "name the job, or pass one execution with --execution"],
    ["job stop web --all", "--all cannot be combined with names or filters"],
    ["job stop --execution x --wait", "--wait and --execution cannot be combined"],
    ["job stop --all", "without a terminal: use --yes to confirm, or --dry-run to see the jobs"],
    ["job delete", "name the jobs, or select them with --types, --states or --all"],
    ["job delete --states active", "cannot use 'active' as states value"],
    ["job delete --all --etag x", "--etag requires exactly one named job"],
    ["job revert web zero", "cannot use 'zero' as version value"],
    ["job scale web few", "cannot use 'few' as count value"],
    ["job list --states gone", "cannot use 'gone' as states value"],
  ])("should refuse %s", async (line, message) => {
    expect(await rig.run(line)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
  });
});

describe("run", () => {
  it("should say where the command ran, and exit with 75 when its output cannot be read", async () => {
    // These machines do not respond to requests for output.
    workers.fate = () => "COMPLETES";
    const { code, out, err } = await rig.run(["run", "--cores", "0.5", "--name", "once", "--", "true", "-x"]);
    expect({ code, out }).toEqual({ code: 75, out: "" });
    expect(err).toMatch(/^once: [A-Z]+ on node n[12], execution /m);
    expect(err).toMatch(/^failed to read the output of execution \w+: the output cannot be read: node n[12] is not/m);
    expect((await rig.run("job describe once")).out).toContain("true -x");
  });

  it("should exit with the code of a command that fails, which is not run again", async () => {
    workers.fate = () => "FAILS";
    expect(await rig.run(["run", "--name", "bad", "--", "false"])).toMatchObject({ code: 1, out: "" });
    expect((await rig.run("job executions bad -o name")).out.split("\n")).toHaveLength(2);
  });

  it("should not mistake the execution of an earlier command of the same name for its own", async () => {
    workers.fate = () => "FAILS";
    expect(await rig.run(["run", "--name", "reused", "--", "false"])).toMatchObject({ code: 1 });
    const words = ["run", "--name", "reused", "--selector", "zone=nowhere", "--queue-timeout", "1s", "--", "true"];
    const { code, err } = await rig.run(words);
    expect({ code, err }).toEqual({ code: 75, err: expect.stringMatching(/^the command did not run: /) });
  });

  it("should exit with 75 if the command did not run", async () => {
    const { code, err } = await rig.run(["run", "--selector", "zone=nowhere", "--", "true"]);
    expect(code).toBe(75);
    expect(err).toMatch(/^failed to run the command: /);
    const away = await rig.run(["run", "--", "true"], { env: { ROLLCALL_SERVER: "127.0.0.1:1" } });
    expect(away.code).toBe(75);
  });

  it("should stop the command when it is interrupted", async () => {
    const interruption = new AbortController();
    const { code } = await rig.run(["run", "--name", "long", "--", "sleep", "9"], {
      interrupted: interruption.signal,
      onError: (all) => {
        if (all.includes("long: ")) interruption.abort();
      },
    });
    expect(code).toBe(130);
    expect((await rig.run("job list --states stopped -o name")).out).toContain("long\n");
  });

  it.each([
    [["run"], "no command given"],
    [["run", "--memory", "much", "--", "x"], "cannot use 'much' as memory value"],
    [["run", "-e", "MODE", "--", "x"], "cannot use 'MODE' as env value"],
  ])("should refuse %j", async (words, message) => {
    expect(await rig.run(words)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
  });
});

describe("node drain with work", () => {
  it("should move the services, and end when nothing runs there any longer", async () => {
    await started("moved");
    const { code, out } = await rig.run("node drain n1 --deadline 1h");
    expect({ code, out }).toEqual({ code: 0, out: "Ok: n1 is draining\nn1 is drained\n" });
    expect((await getNode(rig.store.db, "n1"))?.scheduling.state).toBe("DRAINED");
    expect((await rig.run("job executions moved --states ready --node n2 -o name")).out.split("\n")).toHaveLength(3);
    expect(await rig.run("node undrain n1")).toMatchObject({ code: 0 });
  });
});
