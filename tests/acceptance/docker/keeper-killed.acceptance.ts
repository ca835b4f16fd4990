import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { until } from "../../../libs/testkit/src/time.ts";
import { machineClock } from "../../../services/keeper/src/execution/keeper-services.ts";
import { parseRecord } from "../../../services/keeper/src/journal/execution-entry.ts";
import { keeperSocket } from "../../../services/keeper/src/keeper-places.ts";
import type { KeeperSettings } from "../../../services/keeper/src/start-keeper.ts";
import { identityOf, KeeperFixture, TEST_RULES } from "../../../services/keeper/src/testing/keeper-fixture.ts";
import { KeeperClient, KeeperProcess } from "../../../services/keeper/src/testing/keeper-process.ts";
import { EngineProxy, type Hold } from "./engine-proxy.ts";
import { IMAGE, PodmanEngine } from "./podman-engine.ts";

const CREATE = { method: "POST", path: /\/containers\/create/ };
const START = { method: "POST", path: /\/containers\/[^/]+\/start/ };
const KILL = { method: "POST", path: /\/containers\/[^/]+\/kill/ };

describe("a keeper of containers that was killed", () => {
  let engine: PodmanEngine;
  let proxy: EngineProxy;
  let fixture: KeeperFixture;
  let keeper: KeeperProcess;
  let client: KeeperClient;

  beforeAll(async () => {
    engine = await PodmanEngine.create();
    proxy = await EngineProxy.listen(proxyPath(), engine.socketPath);
  });

  afterAll(async () => {
    await proxy?.close();
    await engine?.dispose();
  });

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    const settings: KeeperSettings = {
      ...{ ...TEST_RULES, executors: ["docker"], stateDirectory: fixture.stateDirectory },
      ...{ directory: null, mayBeOwnUser: false, dockerHost: `unix://${proxyPath()}` },
    };
    keeper = await KeeperProcess.start(settings, keeperSocket(fixture.stateDirectory));
    client = await KeeperClient.connect(keeperSocket(fixture.stateDirectory));
  });

  afterEach(async () => {
    proxy.hold(null);
    client.close();
    await keeper.end("SIGKILL");
    await fixture.dispose();
  });

  const proxyPath = () => join(engine.root, "proxy.sock");

  async function start(script: string, task = {}): Promise<string> {
    const value = { image: IMAGE, command: ["sh", "-c", script], ...task };
    const identity = identityOf({ task: { case: "docker", value } });
    const reference = { id: identity.id, specDigest: Buffer.from(identity.specDigest, "hex") };
    const spec = Buffer.from(identity.spec, "base64");
    const reply = await client.request({ case: "start", value: { reference, spec, logId: "log-1", nodeId: "n" } });
    expect(reply.error).toBe("");
    return identity.id;
  }

  const openNext = () => fixture.open({ dockerHost: engine.host, rules: { executors: ["docker"] } });
  const containersOf = (id: string) =>
    engine.podman("ps", "--all", "--no-trunc", "--format", "{{.ID}}", "--filter", `label=rollcall.execution=${id}`);
  const recordOf = async (id: string) => {
    const text = await readFile(join(fixture.stateDirectory, "keeper/executions", id, "record.json"), "utf8");
    return parseRecord(text);
  };
  const running = (id: string) => until("it to run", async () => (await recordOf(id))?.state.phase.kind === "running");

  it.each<[string, Hold]>([
    ["before the engine had to create it", { ...CREATE, when: "before" }],
    ["when it was created", { ...CREATE, when: "after" }],
    ["before the engine had to start it", { ...START, when: "before" }],
    ["when it was started", { ...START, when: "after" }],
  ])("should run a container once: %s", async (_, hold) => {
    proxy.hold(hold);
    const id = await start("echo begun; trap 'exit 0' TERM; while :; do sleep 0.05; done");
    await proxy.caught();
    const before = await containersOf(id);
    await keeper.end("SIGKILL");
    proxy.hold(null);
    await openNext();
    await fixture.phase(id, "running");
    await fixture.written(id, "begun");
    const after = await containersOf(id);
    expect(after.split("\n")).toHaveLength(1);
    if (before !== "") expect(after).toBe(before);
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    await fixture.phase(id, "ended");
    expect(await fixture.output(id)).toBe("begun\n");
  });

  it("should not run a container again that started and ended before the engine's answer arrived", async () => {
    proxy.hold({ ...START, when: "after" });
    const id = await start("echo begun; exit 3");
    await proxy.caught();
    await keeper.end("SIGKILL");
    proxy.hold(null);
    await openNext();
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 3 });
    expect(await fixture.output(id)).toBe("begun\n");
  });

  it("should keep executions running, and lose no line of their output", async () => {
    const script = "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo $i; [ $((i%40)) = 0 ] && sleep 0.05; done; exit 5";
    const id = await start(script);
    await running(id);
    const container = await containersOf(id);
    await keeper.end("SIGKILL");
    await openNext();
    await fixture.written(id, "\n");
    await openNext();
    expect(await containersOf(id)).toBe(container);
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 5 });
    const lines = Array.from({ length: 4_000 }, (_, index) => `${index + 1}\n`);
    expect(await fixture.output(id)).toBe(lines.join(""));
  });

  it("should offer containers as long as its engine answers", async () => {
    const offers = () => client.frames.flatMap((frame) => (frame.case === "greeting" ? [frame.value] : []));
    const { reply } = await client.request({ case: "greet", value: {} });
    expect(reply).toMatchObject({
      case: "greeting",
      value: { executors: ["docker"], limits: expect.arrayContaining(["cpu", "memory"]) },
    });
    await engine.stop();
    await until("an offer of nothing", () => offers().at(-1)?.executors.length === 0);
    expect(offers().at(-1)?.problem).toContain("the container engine does not respond");
    await engine.start();
    await until("an offer of containers", () => offers().at(-1)?.executors.includes("docker"));
    expect(offers().at(-1)).toMatchObject({ problem: "", limits: expect.arrayContaining(["cpu", "memory"]) });
  });

  it("should find the end of a container that ended while no keeper was running", async () => {
    const id = await start("echo begun; while ! test -e /tmp/go; do sleep 0.05; done; echo last words; exit 6");
    await running(id);
    const container = await containersOf(id);
    await keeper.end("SIGKILL");
    await engine.podman("exec", container, "touch", "/tmp/go");
    await engine.podman("wait", container);
    await openNext();
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 6 });
    expect(await fixture.output(id)).toBe("begun\nlast words\n");
  });

  it.each(["before", "after"] as const)(
    "should stop the execution that it was about to stop: signal held %s",
    async (when) => {
      const script = "echo begun; trap 'echo bye; exit 7' TERM; while :; do sleep 0.05; done";
      const id = await start(script, { stop: { grace: durationFromMs(60_000) } });
      await running(id);
      proxy.hold({ ...KILL, when });
      const reference = { id };
      await client.request({ case: "stop", value: { reference, logId: "log-1" } });
      await proxy.caught();
      await keeper.end("SIGKILL");
      proxy.hold(null);
      await openNext();
      expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", code: 7 });
      expect(await fixture.output(id)).toBe("begun\nbye\n");
    },
  );

  it("should start where an execution ends just before the signal to stop it", async () => {
    const id = await start("echo begun; while ! test -e /tmp/go; do sleep 0.05; done; echo bye; exit 7");
    await running(id);
    proxy.hold({ ...KILL, when: "before" });
    await client.request({ case: "stop", value: { reference: { id }, logId: "log-1" } });
    await proxy.caught();
    await keeper.end("SIGKILL");
    proxy.hold({ ...KILL, when: "before" });
    const next = fixture.open({ dockerHost: `unix://${proxyPath()}`, rules: { executors: ["docker"] } });
    await proxy.caught();
    const container = await containersOf(id);
    await engine.podman("exec", container, "touch", "/tmp/go");
    await engine.podman("wait", container);
    proxy.release();
    await next;
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", code: 7 });
    expect(await fixture.output(id)).toBe("begun\nbye\n");
  });

  it("should report containers of the previous boot, and removed ones, as ended", async () => {
    const [id, gone] = [await start("sleep 1000"), await start("sleep 1000")];
    await running(id);
    await running(gone);
    const container = await containersOf(id);
    await keeper.end("SIGKILL");
    await engine.podman("rm", "--force", "--time=0", await containersOf(gone));
    await openNext();
    expect(await fixture.phase(gone, "ended")).toMatchObject({ cause: "GONE" });
    expect(await fixture.phase(id, "running")).toBeDefined();
    // Crash the machine. The crash ends the container, and the engine reports this after the boot.
    await fixture.keeper.close();
    await engine.podman("kill", container);
    await engine.podman("wait", container);
    const clock = { ...machineClock, nowMs: () => 1_000_000, wallMs: () => Date.now() + 2_000_000 };
    await fixture.open({ dockerHost: engine.host, rules: { executors: ["docker"] }, bootId: "another", clock });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 137 });
  });
});
