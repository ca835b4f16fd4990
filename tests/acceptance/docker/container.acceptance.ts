import { mkdir, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { until } from "../../../libs/testkit/src/time.ts";
import type { ExecutionIdentity } from "../../../services/keeper/src/journal/execution-entry.ts";
import { KeeperFixture, type SpecInit } from "../../../services/keeper/src/testing/keeper-fixture.ts";
import { ImageRegistry } from "./image-registry.ts";
import { IMAGE, PodmanEngine } from "./podman-engine.ts";

const DISTINCT = "localhost/rollcall-distinct:1";
const MIB = 1024 ** 2;
const secretGrants = [{ name: "password", grants: ["token:ci/job-1"] }];

describe("a container", () => {
  let engine: PodmanEngine;
  let fixture: KeeperFixture;

  beforeAll(async () => {
    engine = await PodmanEngine.create();
  });

  afterAll(() => engine?.dispose());

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    await open();
  });

  afterEach(() => fixture?.dispose());

  const open = (secrets: string | null = null) =>
    fixture.open({ dockerHost: engine.host, rules: { executors: ["docker"], secrets, secretGrants } });

  const run = (command: readonly string[], task = {}, more: SpecInit = {}, identity: Partial<ExecutionIdentity> = {}) =>
    fixture.start(
      { task: { case: "docker", value: { image: IMAGE, command: [...command], ...task } }, ...more },
      identity,
    );
  const sh = (script: string, task = {}, more: SpecInit = {}, identity: Partial<ExecutionIdentity> = {}) =>
    run(["sh", "-c", script], task, more, identity);
  const nameOf = async (id: string) => {
    const names = await engine.podman(
      "ps",
      "--all",
      "--format",
      "{{.Names}}",
      "--filter",
      `label=rollcall.execution=${id}`,
    );
    return names.split("\n")[0] ?? "";
  };

  it("should run, and report its output, its end and its image", async () => {
    const id = await sh("echo out; echo err >&2; exit 3");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 3, signal: null });
    expect(await fixture.output(id)).toBe("out\n");
    expect(await fixture.output(id, "stderr")).toBe("err\n");
    expect(fixture.record(id).state.about).toMatch(/^image localhost\/rollcall-test@sha256:[0-9a-f]{64}$/);
  });

  it("should run the image's own command if its job gives none", async () => {
    const id = await run([]);
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 0 });
    expect(await fixture.output(id)).toBe("the image has a command\n");
  });

  it("should have what its job provides, and nothing of the machine", async () => {
    const secrets = join(fixture.root, "secrets");
    await mkdir(secrets, { mode: 0o700 });
    await writeFile(join(secrets, "password"), "s3cret\n");
    await open(secrets);
    const script = [
      "env | grep -E '^(A|B|PORT_|ROLLCALL_|NVIDIA|CUDA)' | sort; echo $0; id -u",
      "grep -E '^(NoNewPrivs|CapPrm|CapBnd)' /proc/self/status; ls /; cat /proc/mounts",
    ].join("; ");
    const task = { env: { A: "one two" }, secretEnv: { B: "password" }, user: "1234" };
    const words = ["sh", "-c", script, "$PORT_WEB-$A-$NONE"];
    const id = await run(words, task, { owner: "token:ci" }, { index: 4, ports: { web: 34_567 } });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 0 });
    const lines = (await fixture.output(id)).split("\n").map((line) => line.replace(/\s+/g, " "));
    expect(lines).toEqual(
      expect.arrayContaining([
        ...["A=one two", "B=s3cret", "CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=void", "PORT_WEB=34567"],
        ...["ROLLCALL_INDEX=4", "ROLLCALL_JOB=job-1", "ROLLCALL_NODE=node-1", `ROLLCALL_EXECUTION=${id}`],
        ...["34567-one two-$NONE", "1234", "NoNewPrivs: 1", "CapPrm: 0000000000000000"],
      ]),
    );
    expect(lines).toContain("CapBnd: 0000000000000000");
    expect(lines.join("\n")).not.toContain(fixture.root);
    const [settings] = JSON.parse(await engine.podman("inspect", await nameOf(id)));
    expect(settings.HostConfig).toMatchObject({ Privileged: false, AutoRemove: false, Binds: [], PidMode: "private" });
    expect(settings.Mounts).toEqual([]);
    const root = await sh("id -u; grep -E '^(NoNewPrivs|CapBnd)' /proc/self/status");
    await fixture.phase(root, "ended");
    // The mask consists of CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID and NET_BIND_SERVICE.
    expect(await fixture.output(root)).toMatch(/^0\nCapBnd:\s+0{13}4eb\nNoNewPrivs:\s+1\n$/);
  });

  it("should be reported as out of memory, and only then", async () => {
    const resources = { memoryBytes: BigInt(20 * MIB), millicores: 500 };
    const hungry = await sh("head -c 200m /dev/zero | tail -c 200m >/dev/null; exit 1", {}, { resources });
    const sated = await sh("kill -KILL $$", {}, { resources });
    expect(await fixture.phase(hungry, "ended")).toMatchObject({ cause: "OOM" });
    expect(await fixture.phase(sated, "ended")).toMatchObject({ cause: "EXITED" });
    const [{ HostConfig }] = JSON.parse(await engine.podman("inspect", await nameOf(sated)));
    expect(HostConfig).toMatchObject({ Memory: 20 * MIB, MemorySwap: 20 * MIB, NanoCpus: 500_000_000 });
  });

  it("should publish its ports, and be ready when they answer", async () => {
    const [port, other] = [await freePort(), await freePort()];
    const check = {
      probe: { case: "http", value: { port: "web", path: "/ready" } },
      interval: durationFromMs(50),
    } as const;
    const script = "mkdir /tmp/www; touch /tmp/www/ready; exec httpd -f -p $PORT_WEB -h /tmp/www";
    const id = await sh(script, {}, { check }, { ports: { web: port, other } });
    await ready(id);
    expect(await statusOf(port)).toBe(200);
    const tcp = { probe: { case: "tcp", value: { port: "web" } }, interval: durationFromMs(50), failures: 2 } as const;
    const readyDeadline = durationFromMs(2_000);
    const deaf = await sh("sleep 1000", {}, { check: tcp, readyDeadline }, { ports: { web: await freePort() } });
    // Even if nothing in the container accepts connections, the engine's port proxy can accept them.
    expect(await fixture.phase(deaf, "ended")).toMatchObject({ cause: "CHECK_FAILED" });
    expect(fixture.record(id).state.phase).toMatchObject({ kind: "running", isReady: true });
  });

  it("should run check commands inside it", async () => {
    const check = (argv: string[], more = {}) =>
      ({
        check: {
          probe: { case: "command", value: { command: argv } },
          interval: durationFromMs(50),
          failures: 2,
          ...more,
        },
        readyDeadline: durationFromMs(5_000),
      }) as const;
    const good = await sh(
      "touch /tmp/$MARK; sleep 1000",
      { env: { MARK: "here" } },
      check(["sh", "-c", "test -e /tmp/$MARK"]),
    );
    const bad = await sh("sleep 1000", {}, check(["false"]));
    const none = await sh("sleep 1000", {}, check(["/no/such/program"]));
    const slow = await sh("sleep 1000", {}, check(["sleep", "1000"], { timeout: durationFromMs(1_000) }));
    await ready(good);
    for (const id of [bad, none, slow])
      expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "CHECK_FAILED" });
    expect(fixture.record(bad).state.message).toContain("the command ended with 1");
    expect(fixture.record(slow).state.message).toContain("its command from an earlier check is still running");
  });

  it("should be stopped by the signal of its job, and killed after the grace period", async () => {
    const stop = (graceMs: number) => ({ stop: { signal: "SIGINT", grace: durationFromMs(graceMs) } });
    const polite = await sh("trap 'echo bye; exit 7' INT; echo on; while :; do sleep 0.05; done", stop(60_000));
    const deaf = await sh("trap '' INT TERM; echo on; while :; do sleep 0.05; done", stop(50));
    for (const id of [polite, deaf]) {
      await fixture.written(id, "on");
      await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    }
    expect(await fixture.phase(polite, "ended")).toMatchObject({ cause: "STOPPED", code: 7 });
    expect(await fixture.output(polite)).toBe("on\nbye\n");
    expect(await fixture.phase(deaf, "ended")).toMatchObject({ cause: "STOPPED", code: 137 });
  });

  it("should end after its maximum run time", async () => {
    const id = await sh("trap 'exit 0' TERM; while :; do sleep 0.05; done", {}, { maxRunTime: durationFromMs(300) });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "DEADLINE_EXCEEDED" });
  });

  it("should keep the newest of its output within its limits", async () => {
    const script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; printf end";
    const id = await sh(script, { output: { maxFileBytes: 4096n, maxFiles: 2 } });
    await fixture.phase(id, "ended");
    const kept = await fixture.output(id);
    expect(kept.length).toBeLessThanOrEqual(8192);
    expect(kept).toMatch(/\nline 2999\nline 3000\nend$/);
  });

  it.each([
    [{ image: "127.0.0.1:1/none:1" }, "image 127.0.0.1:1/none:1 cannot be pulled"],
    [{ command: ["/no/such/program"] }, "/no/such/program"],
    [{ user: "no-such-user" }, "no-such-user"],
    [{ secretEnv: { A: "none" } }, "the node has no secrets"],
  ])("should say why it could not be started: %j", async (task, message) => {
    const id = await sh("true", task);
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "START_FAILED", code: null });
    expect(fixture.record(id).state.message).toContain(message);
  });

  it("should pull a missing image, by name or by digest, once for all executions that wait for it", async () => {
    const made = await engine.podman("create", IMAGE);
    await engine.podman("commit", "--quiet", "--change", "LABEL distinct=1", made, DISTINCT);
    await engine.podman("rm", made);
    const layout = join(engine.root, "layout");
    await engine.podman("save", "--format", "oci-dir", "--output", layout, DISTINCT);
    const registry = await ImageRegistry.serve(layout);
    try {
      // Remove the image first, because an engine knows all digests of an image, regardless of the name under which it
      // was pulled.
      await engine.podman("rmi", "--force", DISTINCT);
      const named = `${registry.address}/test:1`;
      const digest = `${registry.address}/test@${registry.digest}`;
      const ids = [await sh("true", { image: named }), await sh("true", { image: named })];
      for (const id of ids) {
        expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 0 });
        expect(fixture.record(id).state.about).toBe(`image ${digest}`);
      }
      expect(registry.requests.filter((one) => one === "GET /v2/test/manifests/1")).toHaveLength(1);
      await engine.podman("rmi", "--force", named);
      const exact = await sh("true", { image: digest });
      expect(await fixture.phase(exact, "ended")).toMatchObject({ cause: "EXITED", code: 0 });
      expect(fixture.record(exact).state.about).toBe(`image ${digest}`);
      const unknown = await sh("true", { image: `${registry.address}/test:2` });
      expect(await fixture.phase(unknown, "ended")).toMatchObject({ cause: "START_FAILED" });
      expect(fixture.record(unknown).state.message).toMatch(/test:2 cannot be pulled: .*manifest unknown/);
    } finally {
      await registry.close();
    }
  });

  it("should be stopped while its image is pulled, and report the pull until then", async () => {
    // A registry that accepts connections and never responds.
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const address = silent.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      const id = await sh("true", { image: `127.0.0.1:${port}/test:1` });
      await until("word of the pull", () => fixture.record(id).state.message.startsWith("pulling image 127.0.0.1"));
      expect(fixture.record(id).state.phase.kind).toBe("starting");
      await fixture.keeper.stop(fixture.record(id).identity, "log-1");
      expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", code: null });
    } finally {
      silent.close();
    }
  });

  it("should be removed when its end is forgotten, without touching others", async () => {
    const foreign = await engine.podman("create", "--label", "rollcall.execution=e1", IMAGE);
    const [id, other] = [await sh("true"), await sh("true")];
    await fixture.phase(id, "ended");
    await fixture.phase(other, "ended");
    const name = await nameOf(id);
    fixture.keeper.forget([id]);
    await until("its container to be gone", async () => !(await namesOfAll()).includes(name));
    expect(await namesOfAll()).toContain(await nameOf(other));
    // The keeper uses labels to find containers that an earlier keeper could not remove.
    const labels = [`rollcall.keeper=${/^rollcall-([0-9a-f]+)-/.exec(name)?.[1]}`, "rollcall.execution=lost"];
    const left = await engine.podman("create", ...labels.flatMap((label) => ["--label", label]), IMAGE);
    await fixture.keeper.tidy();
    const all = await engine.containers();
    expect(all).not.toContain(left);
    expect(all).toContain(foreign);
    // If a foreign container uses the name, the execution fails, and the keeper does not touch that container.
    const taken = name.replace(id, "e2");
    const strange = await engine.podman("create", "--name", taken, IMAGE);
    const refused = await sh("true", {}, {}, { id: "e2" });
    expect(await fixture.phase(refused, "ended")).toMatchObject({ cause: "START_FAILED" });
    fixture.keeper.forget([refused]);
    await fixture.keeper.tidy();
    expect(await engine.containers()).toContain(strange);
    await engine.podman("rm", foreign, strange);
  });

  it("should be found again when its engine is back, with everything that happened", async () => {
    const runs = await sh("echo one; while ! test -e /tmp/go; do sleep 0.05; done; echo two; exit 4");
    const ends = await sh("echo one; while ! test -e /tmp/go; do sleep 0.05; done; echo two; exit 5");
    const stops = await sh("echo one; trap 'exit 6' TERM; while :; do sleep 0.05; done");
    for (const id of [runs, ends, stops]) await fixture.written(id, "one");
    const before = await engine.containers();
    const [first, second] = [await nameOf(runs), await nameOf(ends)];
    await engine.stop();
    await fixture.keeper.stop(fixture.record(stops).identity, "log-1");
    await engine.podman("exec", second, "touch", "/tmp/go");
    const late = await sh("true");
    expect(await fixture.phase(late, "ended")).toMatchObject({ cause: "START_FAILED" });
    expect(fixture.record(late).state.message).toContain("does not respond");
    await engine.start();
    expect(await fixture.phase(ends, "ended")).toMatchObject({ cause: "EXITED", code: 5 });
    expect(await fixture.phase(stops, "ended")).toMatchObject({ cause: "STOPPED" });
    await engine.podman("exec", first, "touch", "/tmp/go");
    expect(await fixture.phase(runs, "ended")).toMatchObject({ cause: "EXITED", code: 4 });
    for (const id of [runs, ends]) expect(await fixture.output(id)).toBe("one\ntwo\n");
    expect(await engine.containers()).toEqual(before);
  });

  const ready = (id: string) =>
    until("a check that passes", () => {
      const { phase } = fixture.record(id).state;
      return phase.kind === "running" && phase.isReady;
    });
  const namesOfAll = async () => (await engine.podman("ps", "--all", "--format", "{{.Names}}")).split("\n");
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

function statusOf(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path: "/ready", agent: false }, ({ statusCode = 0 }) => resolve(statusCode)).on(
      "error",
      reject,
    );
  });
}
