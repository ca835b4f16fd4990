import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { machineClock } from "./execution/keeper-services.ts";
import { IS_ROOT, KeeperFixture } from "./testing/keeper-fixture.ts";

const MIB = 1024 ** 2;
const process = (command: string[], more = {}) => ({ case: "process", value: { command, ...more } }) as const;

describe("an execution", () => {
  let fixture: KeeperFixture;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    await fixture.open();
  });

  afterEach(() => fixture.dispose());

  it("should only have the environment from its job and its node", async () => {
    const env = { MODE: "prod", QUOTED: 'it\'s\na "line" $HOME', LD_PRELOAD: "" };
    const command = ["sh", "-c", "env | sort; echo $0 $1", "$MODE", ["$$MODE-$", "{PORT_HTTP}-$NONE"].join("")];
    const id = await fixture.start(
      { task: process(command, { env }) },
      { index: 4, ports: { http: 8123 }, gpuUuids: ["GPU-1", "GPU-2"] },
    );
    expect(await fixture.phase(id, "ended")).toMatchObject({ code: 0 });
    await fixture.written(id, "prod $MODE-8123-$NONE\n");
    const lines = (await fixture.output(id)).split("\n");
    const names = lines.flatMap((line) => /^([A-Z_]+)=/.exec(line)?.[1] ?? []).sort();
    expect(names).toEqual([
      ...["CUDA_VISIBLE_DEVICES", "HOME", "LD_PRELOAD", "MODE", "PATH", "PORT_HTTP", "PWD", "QUOTED"],
      ...["ROLLCALL_EXECUTION", "ROLLCALL_HOME", "ROLLCALL_INDEX", "ROLLCALL_JOB", "ROLLCALL_NODE"],
    ]);
    expect(lines).toEqual(
      expect.arrayContaining(["CUDA_VISIBLE_DEVICES=GPU-1,GPU-2", "ROLLCALL_INDEX=4", "PORT_HTTP=8123"]),
    );
    expect(lines).toEqual(expect.arrayContaining(["QUOTED=it's", 'a "line" $HOME']));
  });

  it.each([
    [["/no/such/program"], "cannot find the program /no/such/program"],
    [["no-such-program"], "cannot find the program no-such-program"],
  ])("should say why %j could not be started", async (command, message) => {
    const id = await fixture.start({ task: process(command) });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "START_FAILED", code: null });
    expect(fixture.record(id).state.message).toBe(message);
  });

  it("should keep its newest output within its limits", async () => {
    const output = { maxFileBytes: 1024n, maxFiles: 2 };
    const command = ["sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done"];
    const id = await fixture.start({ task: process(command, { output }) });
    await fixture.phase(id, "ended");
    await fixture.written(id, "line 2000\n");
    const kept = await fixture.output(id);
    expect(kept.length).toBeLessThanOrEqual(2048);
    expect(kept).not.toContain("line 1\n");
    const tail = await fixture.keeper.read(id, "stdout", { from: { kind: "tail", bytes: 5 }, limitBytes: 100 });
    expect(Buffer.from(tail.data).toString()).toBe("2000\n");
    await until("its end", async () => {
      const { isEnd } = await fixture.keeper.read(id, "stdout", { from: { kind: "tail", bytes: 5 }, limitBytes: 100 });
      return isEnd;
    });
  });

  it("should end as OOM only if it ran out of memory", async () => {
    if (!fixture.cgroups?.limits.includes("memory")) {
      // This machine offers no memory limit. That is only acceptable for users other than root.
      expect(IS_ROOT).toBe(false);
      return;
    }
    const hungry = "head -c 200m /dev/zero | tail -c 200m >/dev/null; exit 1";
    const resources = { memoryBytes: BigInt(20 * MIB) };
    const id = await fixture.sh(hungry, { resources });
    const sated = await fixture.sh("kill -KILL $$", { resources });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "OOM" });
    expect(await fixture.phase(sated, "ended")).toMatchObject({ cause: "EXITED", signal: "SIGKILL" });
  });

  it("should end after its maximum run time", async () => {
    const id = await fixture.sh("sleep 1000", { maxRunTime: durationFromMs(300) });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "DEADLINE_EXCEEDED", signal: "SIGTERM" });
  });

  it("should stop when the control plane is away for too long, whether the agent runs or not", async () => {
    const spec = { stopOnAgentAfter: durationFromMs(3_600_000) };
    const [id, other] = [await fixture.sh("sleep 1000", spec), await fixture.sh("sleep 1000")];
    await fixture.phase(id, "running");
    await fixture.phase(other, "running");
    // No agent connects. The next keeper, an hour and a second later, counts from the time that this keeper wrote.
    fixture.keeper.seen();
    const later = { ...machineClock, nowMs: () => machineClock.nowMs() + 3_601_000 };
    await fixture.open({ clock: later });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "CONTROL_PLANE_LOST", signal: "SIGTERM" });
    expect(fixture.record(other).state.phase.kind).toBe("running");
  });

  it("should become ready when its check passes, and end at its deadline if it never does", async () => {
    const check = (argv: string[]) => ({
      probe: { case: "command", value: { command: argv } } as const,
      interval: durationFromMs(50),
      failures: 1,
    });
    const good = await fixture.sh("touch ready; sleep 1000", { check: check(["sh", "-c", "[ -e $HOME/ready ]"]) });
    // Long enough for several checks, also on a busy machine.
    const readyDeadline = durationFromMs(5_000);
    const bad = await fixture.sh("sleep 1000", { check: check(["false"]), readyDeadline });
    expect(await fixture.phase(bad, "ended")).toMatchObject({ cause: "CHECK_FAILED" });
    expect(fixture.record(bad).state.message).toMatch(/^not ready within 5 s: check failed \d+ times in a row/);
    await until("a check that passes", () => {
      const { phase } = fixture.record(good).state;
      return phase.kind === "running" && phase.isReady;
    });
  });
});

needsRoot().describe("an execution of another user", () => {
  let fixture: KeeperFixture;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    await mkdir(join(fixture.root, "open"));
    await mkdir(join(fixture.root, "closed"));
    await symlink(join(fixture.root, "closed"), join(fixture.root, "open", "link"));
    await mkdir(join(fixture.root, "secrets"), { mode: 0o700 });
    await writeFile(join(fixture.root, "secrets", "password"), "s3cret\n", { mode: 0o600 });
    await fixture.open({
      rules: {
        users: ["daemon", "root"],
        directories: [join(fixture.root, "open")],
        secrets: join(fixture.root, "secrets"),
        secretGrants: [
          { name: "password", grants: ["token:ci/job-1"] },
          { name: "nothing", grants: ["*/*"] },
          { name: "others", grants: ["token:ops/job-1", "token:ci/job-2"] },
        ],
      },
    });
  });

  afterEach(() => fixture.dispose());

  it("should not be able to read the agent's key, the keeper's socket or the output of others", async () => {
    const { stateDirectory } = fixture;
    const key = join(stateDirectory, "node-key.pem");
    await writeFile(key, "key", { mode: 0o600 });
    const other = await fixture.sh("echo hidden; sleep 1000");
    await fixture.written(other, "hidden");
    const child = await readFile(join(stateDirectory, "keeper/executions", other, "run/child"), "utf8");
    const pid = Number.parseInt(child, 10);
    const paths = [
      key,
      join(stateDirectory, "keeper/socket"),
      join(stateDirectory, "keeper/executions", other, "record.json"),
      join(stateDirectory, "keeper/executions", other, "stdout-0000000000000000"),
      join(fixture.root, "secrets/password"),
      `/proc/${pid}/fd/1`,
    ];
    const id = await fixture.start({
      task: process([
        "sh",
        "-c",
        'id -u; for f in "$@"; do if timeout 2 head -c 1 "$f"; then echo READ $f; fi; done',
        "sh",
        ...paths,
      ]),
    });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED" });
    await until65534(id);
    expect(await fixture.output(id)).not.toContain("READ");
  });

  const until65534 = (id: string) => fixture.written(id, "65534\n");

  it("should not become root", async () => {
    const id = await fixture.sh("grep -E 'NoNewPrivs|CapEff|CapPrm|CapAmb' /proc/self/status; id -G");
    await fixture.phase(id, "ended");
    await fixture.written(id, "65534\n");
    const text = await fixture.output(id);
    expect(text).toMatch(/NoNewPrivs:\s+1/);
    expect(text.match(/Cap\w+:\s+0000000000000000/g)).toHaveLength(3);
  });

  it.each<[{ user?: string; directory?: string; secretEnv?: Record<string, string> }, string]>([
    [{ user: "root" }, "executions never run as root"],
    [{ user: "bin" }, "does not allow the user bin"],
    [{ directory: "/etc" }, "does not allow the directory /etc"],
    [{ directory: "OPEN/link" }, "does not allow the directory"],
    [{ directory: "OPEN/../closed" }, "does not allow the directory"],
    [{ secretEnv: { A: "../agent/node-key.pem" } }, "is not a valid secret name"],
    [{ secretEnv: { A: "nothing" } }, "has no secret nothing"],
    [{ secretEnv: { A: "others" } }, "does not allow job job-1 of token:ci to use the secret others"],
    [{ secretEnv: { A: "unlisted" } }, "does not allow job job-1 of token:ci to use the secret unlisted"],
  ])("should be refused %j", async (more, message) => {
    const directory = more.directory?.replace("OPEN", join(fixture.root, "open"));
    const task = process(["true"], { ...more, ...(directory && { directory }) });
    const id = await fixture.start({ owner: "token:ci", task });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "START_FAILED" });
    expect(fixture.record(id).state.message).toContain(message);
  });

  it("should get the user, directory and secrets that its job is allowed to name", async () => {
    const directory = join(fixture.root, "open");
    await chmod(directory, 0o755);
    const more = { user: "daemon", directory, secretEnv: { PASSWORD: "password" } };
    const task = process(["sh", "-c", "id -un; pwd; echo $PASSWORD"], more);
    const id = await fixture.start({ owner: "token:ci", task });
    await fixture.phase(id, "ended");
    await fixture.written(id, `daemon\n${directory}\ns3cret\n`);
  });
});
