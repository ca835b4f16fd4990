import { execFile } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { WorkContainment } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Running, silentLogger } from "@rollcall/process";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { openCgroups } from "./cgroup/cgroup-hierarchy.ts";
import { keeperPlaces } from "./keeper-places.ts";
import { findAccount } from "./launch/prepare-launch.ts";
import { type KeeperSettings, type StartKeeperOptions, startKeeper } from "./start-keeper.ts";
import { IS_ROOT, identityOf } from "./testing/keeper-fixture.ts";
import { KeeperClient } from "./testing/keeper-process.ts";

const run = promisify(execFile);

/** The user who runs the agent and owns its key. */
const AGENT = "daemon";

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "rollcall-keeper-start-"));
});

afterEach(() => rm(root, { recursive: true, force: true }));

needsRoot().describe("startKeeper() as root, with an agent of another user", () => {
  let running: Running | null = null;
  let own: string;

  beforeEach(async () => {
    own = join(root, "keeper");
    await chmod(root, 0o711);
    const { uid, gid } = (await findAccount(AGENT)) ?? { uid: 0, gid: 0 };
    await mkdir(join(root, "agent"), { mode: 0o700 });
    await chown(join(root, "agent"), uid, gid);
  });

  afterEach(async () => {
    await running?.close();
    running = null;
  });

  const settingsWith = (changes: Partial<KeeperSettings> = {}): KeeperSettings => ({
    ...{
      executors: ["process"],
      user: "nobody",
      userIds: null,
      users: [],
      directories: [],
      secrets: null,
      secretGrants: [],
      mayBeOwnUser: false,
    },
    ...{ stateDirectory: join(root, "agent"), directory: own, dockerHost: null, ...changes },
  });

  async function start(
    changes: Partial<KeeperSettings> = {},
    others: Pick<StartKeeperOptions, "findUser" | "openCgroups"> = {},
  ): Promise<KeeperClient> {
    const settings = settingsWith(changes);
    running = await startKeeper({ settings, version: "0.1.0", log: silentLogger, ...others });
    return KeeperClient.connect(join(own, "socket"));
  }

  async function greeting(client: KeeperClient) {
    const { reply } = await client.request({ case: "greet", value: {} });
    return reply.case === "greeting" ? reply.value : null;
  }

  const canOpen = (user: string) =>
    run("setpriv", [`--reuid=${user}`, "--clear-groups", "test", "-w", join(own, "socket")]).then(
      () => true,
      () => false,
    );

  it("should give its socket to the agent's user, and nothing else to anyone", async () => {
    const client = await start();
    expect(await greeting(client)).toMatchObject({ executors: ["process"], problem: "" });
    client.close();
    expect([await canOpen(AGENT), await canOpen("nobody")]).toEqual([true, false]);
    const modes = await Promise.all(["", "keeper", "work"].map((name) => stat(join(own, name))));
    expect(modes.map(({ mode, uid }) => [(mode & 0o777).toString(8), uid])).toEqual([
      ["711", 0],
      ["700", 0],
      ["711", 0],
    ]);
  });

  it("should not run executions as the agent's user, even if a job names it", async () => {
    const client = await start({ users: [AGENT] });
    const value = { command: ["true"], user: AGENT };
    const { id, spec, specDigest } = identityOf({ task: { case: "process", value } });
    const reference = { id, specDigest: Buffer.from(specDigest, "hex") };
    await client.request({ case: "greet", value: {} });
    const order = { reference, spec: Buffer.from(spec, "base64"), logId: "log-1", nodeId: "n" };
    expect(await client.request({ case: "start", value: order })).toMatchObject({ error: "" });
    await until("its refusal", () =>
      client.frames.some(
        (frame) =>
          frame.case === "changed" &&
          frame.value.observation?.message === "executions never run as the agent's own user",
      ),
    );
    client.close();
  });

  it("should offer no executor if executions would run as the agent's user by default", async () => {
    const client = await start({ user: AGENT });
    expect(await greeting(client)).toMatchObject({
      executors: [],
      problem: expect.stringContaining("the agent's own user"),
    });
    client.close();
  });

  it("should offer the process executor as soon as its user exists", async () => {
    let isThere = false;
    const findUser = async (name: string) => (isThere ? findAccount(name) : null);
    const client = await start({}, { findUser });
    expect(await greeting(client)).toMatchObject({ executors: [], problem: expect.stringContaining("no such user") });
    isThere = true;
    await until("the executor", () =>
      client.frames.some((frame) => frame.case === "greeting" && frame.value.executors.includes("process")),
    );
    client.close();
  });

  it("should announce cgroups when they become available, and run executions in them", async () => {
    let areThere = false;
    const open = async (name: string) => (areThere ? openCgroups(name) : null);
    const client = await start({}, { openCgroups: open });
    const first = await greeting(client);
    expect(first?.isolation?.containment).not.toBe(WorkContainment.CGROUP);
    areThere = true;
    // Check only on a machine with cgroups.
    if ((await openCgroups("none")) !== null) {
      await until("the cgroups", () =>
        client.frames.some(
          (frame) => frame.case === "greeting" && frame.value.isolation?.containment === WorkContainment.CGROUP,
        ),
      );
    }
    client.close();
  });

  it("should offer no executor if executions would run as root, even for development", async () => {
    const client = await start({ user: null, mayBeOwnUser: true });
    expect(await greeting(client)).toMatchObject({
      executors: [],
      problem: expect.stringContaining("Work.User is not set"),
    });
    client.close();
  });

  it("should report that there is no agent yet", async () => {
    await rm(join(root, "agent"), { recursive: true });
    await expect(start()).rejects.toThrow(/start the agent first, it creates it/);
  });
});

describe("keeperPlaces()", () => {
  it.each([
    ["next to the state directory, if others can reach it", 0o711, () => join(root, "agent-work")],
    [
      "elsewhere, if others cannot reach the state directory",
      0o700,
      (name: string) => (IS_ROOT ? `/var/lib/rollcall-work/${name}` : join(root, "agent-work")),
    ],
  ])("should put the directories of executions %s", async (_, mode, expected) => {
    await chmod(root, mode);
    const { scratch, name, isScratchTemporary } = await keeperPlaces(join(root, "agent"));
    expect([scratch, isScratchTemporary]).toEqual([expected(name), false]);
    expect((await stat(scratch)).mode & 0o777).toBe(0o711);
    await rm(scratch, { recursive: true });
  });
});
