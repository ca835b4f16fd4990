import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { keeperSocket } from "./keeper-places.ts";
import { isAlive, parseStat } from "./machine/process-name.ts";
import type { KeeperSettings } from "./start-keeper.ts";
import { identityOf, KeeperFixture, TEST_RULES } from "./testing/keeper-fixture.ts";
import { KeeperClient, KeeperProcess } from "./testing/keeper-process.ts";

const MANY = 100;
const CATCHABLE = ["SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE"] as const;

describe("a keeper that was killed", () => {
  let fixture: KeeperFixture;
  let first: KeeperProcess;
  let client: KeeperClient;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    const { stateDirectory } = fixture;
    const mayBeOwnUser = TEST_RULES.user === null;
    const own = { stateDirectory, directory: null, mayBeOwnUser, dockerHost: null };
    const settings: KeeperSettings = { ...TEST_RULES, ...own };
    first = await KeeperProcess.start(settings, keeperSocket(stateDirectory));
    client = await KeeperClient.connect(keeperSocket(stateDirectory));
  });

  afterEach(async () => {
    client.close();
    await first.end("SIGKILL");
    await fixture.dispose();
  });

  async function start(script: string): Promise<string> {
    const identity = identityOf({ task: { case: "process", value: { command: ["sh", "-c", script] } } });
    const reference = { id: identity.id, specDigest: Buffer.from(identity.specDigest, "hex") };
    const spec = Buffer.from(identity.spec, "base64");
    const reply = await client.request({ case: "start", value: { reference, spec, logId: "log-1", nodeId: "n" } });
    expect(reply.error).toBe("");
    return identity.id;
  }

  const statOf = async (id: string, name: "shim" | "child") => {
    const path = join(fixture.stateDirectory, "keeper/executions", id, "run", name);
    return until(`${name} of ${id}`, async () => parseStat(await readFile(path, "utf8")));
  };

  it("should not lose executions, output or exits", async () => {
    const runs = await start("echo before; while ! [ -e $HOME/go ]; do sleep 0.05; done; echo after; exit 5");
    const ends = await start("while ! [ -e $HOME/go ]; do sleep 0.05; done; echo last words; exit 6");
    const children = [await statOf(runs, "child"), await statOf(ends, "child")];
    // A keeper that is killed loses the output that it has read but not yet written, so wait until the output is
    // stored.
    await until("its first words", async () => {
      const { reply } = await client.request({ case: "readOutput", value: { id: runs } });
      return reply.case === "output" && reply.value.data.length > 0;
    });
    await first.end("SIGKILL");
    // The execution ends while no keeper is running.
    await letGo(ends);
    await until("its end", () => readFile(join(fixture.stateDirectory, "keeper/executions", ends, "run/exit")));
    await fixture.open();
    expect(await fixture.phase(ends, "ended")).toMatchObject({ cause: "EXITED", code: 6 });
    await fixture.written(ends, "last words\n");
    expect(await fixture.phase(runs, "running")).toBeDefined();
    expect(await statOf(runs, "child")).toEqual(children[0]);
    await letGo(runs);
    expect(await fixture.phase(runs, "ended")).toMatchObject({ cause: "EXITED", code: 5 });
    await fixture.written(runs, "before\nafter\n");
  });

  it(`should find ${MANY} executions again and restart none`, async () => {
    const ids: string[] = [];
    for (let index = 0; index < MANY; index += 1) ids.push(await start("sleep 1000"));
    const before = await Promise.all(ids.map((id) => statOf(id, "child")));
    await first.end("SIGKILL");
    await fixture.open();
    for (const id of ids) await fixture.phase(id, "running");
    expect(await Promise.all(ids.map((id) => statOf(id, "child")))).toEqual(before);
  });

  it("should find the exit of an execution whose shim received every signal that can be caught", async () => {
    const id = await start("while ! [ -e $HOME/go ]; do sleep 0.05; done; exit 7");
    const shim = await statOf(id, "shim");
    await until("its beginning", () => hasBegun(id));
    for (const signal of CATCHABLE) process.kill(shim.pid, signal);
    await letGo(id);
    await until("its end", () => readFile(join(fixture.stateDirectory, "keeper/executions", id, "run/exit")));
    await first.end("SIGKILL");
    await fixture.open();
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 7 });
  });

  it("should report an execution as gone if its shim and process were killed while no keeper was running", async () => {
    const id = await start("sleep 1000");
    const [shim, child] = [await statOf(id, "shim"), await statOf(id, "child")];
    await first.end("SIGKILL");
    process.kill(shim.pid, "SIGKILL");
    process.kill(child.pid, "SIGKILL");
    await fixture.open();
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "GONE", code: null, signal: null });
  });

  it("should end the processes of an execution whose record was lost, and report it as gone", async () => {
    const id = await start("sleep 1000");
    const [shim, child] = [await statOf(id, "shim"), await statOf(id, "child")];
    // Once the execution has begun, its shim no longer writes into the directory that is removed below.
    await until("its beginning", () => hasBegun(id));
    await first.end("SIGKILL");
    await rm(join(fixture.stateDirectory, "keeper"), { recursive: true });
    const keeper = await fixture.open();
    expect(keeper.records()).toEqual([]);
    await keeper.refuse(identityOf({}, { id }), "log-1", { cause: "GONE", message: "lost" });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "GONE" });
    if (fixture.cgroups === null) process.kill(child.pid, "SIGKILL");
    await until("the end of its process", async () => !(await isAlive(child)));
    // Kill the shim, because it cannot record the exit and would wait for a keeper to read it.
    process.kill(shim.pid, "SIGKILL");
  });

  it("should report executions of the previous boot as ended, and kill nothing", async () => {
    const id = await start("sleep 1000");
    const child = await statOf(id, "child");
    await first.end("SIGKILL");
    await fixture.open({ bootId: "another boot" });
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "GONE" });
    process.kill(child.pid, "SIGKILL");
  });

  async function hasBegun(id: string): Promise<boolean> {
    const path = join(fixture.stateDirectory, "keeper/executions", id, "run/status");
    return (await readFile(path, "utf8")).startsWith("begun");
  }

  async function letGo(id: string): Promise<void> {
    const { writeFile } = await import("node:fs/promises");
    await writeFile(join(`${fixture.stateDirectory}-work`, id, "go"), "");
  }
});

describe("Keeper.close()", () => {
  it("should leave executions running for the next keeper", async () => {
    const fixture = await KeeperFixture.create();
    await fixture.open();
    const id = await fixture.sh("echo one; while ! [ -e $HOME/go ]; do sleep 0.05; done; echo two");
    await fixture.written(id, "one");
    await fixture.open();
    expect(fixture.record(id).state.phase.kind).toBe("running");
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", signal: "SIGTERM" });
    await fixture.dispose();
  });
});
