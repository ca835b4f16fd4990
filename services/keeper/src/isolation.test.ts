import { spawn, spawnSync } from "node:child_process";
import { chown, mkdir, mkdtemp, open, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { WorkContainment, WorkIdentity } from "@rollcall/api/rollcall/node/v1/node_pb";
import { silentLogger, systemClock } from "@rollcall/process";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { keeperSocket } from "./keeper-places.ts";
import { closedGroupOf } from "./launch/closed-groups.ts";
import { describeIsolation } from "./launch/describe-isolation.ts";
import { probeIsolation } from "./launch/isolation.ts";
import { becoming } from "./launch/launch-script.ts";
import { isAlive, parseStat } from "./machine/process-name.ts";
import { processesOfUser } from "./machine/user-processes.ts";
import { type FixtureOptions, identityOf, KeeperFixture } from "./testing/keeper-fixture.ts";
import { KeeperClient, KeeperProcess } from "./testing/keeper-process.ts";
import { UserIds } from "./users/user-ids.ts";

const FIRST = 56_100;
const LAST = 56_399;
const KEEPER_MAIN = fileURLToPath(new URL("./testing/keeper-main.ts", import.meta.url));
const OWN = { user: null, userIds: [FIRST, LAST] };

/** A Perl script that takes over a descriptor of a process with pidfd_open and pidfd_getfd, and reads from it. */
const TAKE_OVER = `
$| = 1;
my $pidfd = syscall(434, $ARGV[0] + 0, 0);
my $fd = syscall(438, $pidfd, 1, 0);
if ($fd >= 0) {
  print "TAKEN OVER\\n";
  alarm 1;
  my $count = POSIX::read($fd, my $text, 1);
  print "READ by taking over\\n" if defined $count && $count > 0;
}`;

/** Tries every way to read another process, and prints READ for each that works. */
const ATTACK = `
pid=$1; shift
see() { if text=$(timeout 2 head -c 1 "$1" 2>/dev/null) && [ -n "$text" ]; then echo "READ $1"; fi; }
for name in environ mem maps fd/0 fd/1 fd/2 cwd/secret root/etc/hostname auxv stack; do see "/proc/$pid/$name"; done
for path in "$@"; do see "$path"; ls "$path" >/dev/null 2>&1 && echo "READ $path"; done
kill -0 "$pid" 2>/dev/null && echo "READ by signal"
perl -MPOSIX -e '${TAKE_OVER}' "$pid" 2>/dev/null
timeout 2 head -c 1 <&1 2>/dev/null | grep -q . && echo "READ its own output"
echo tried
`;

const { describe: asRoot } = needsRoot();

asRoot.each<[string, FixtureOptions]>([
  ["as this machine allows", {}],
  ["without cgroups and namespaces", { isBare: true }],
])("executions with their own user ids, %s", (_, options) => {
  let fixture: KeeperFixture;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    await fixture.open({ rules: OWN, ...options });
  });

  afterEach(() => fixture.dispose());

  const homeOf = (id: string) => join(`${fixture.stateDirectory}-work`, id);
  const userOf = async (id: string) => (await stat(homeOf(id))).uid;

  async function pidOf(id: string): Promise<number> {
    const path = join(fixture.stateDirectory, "keeper/executions", id, "run/child");
    return until(`the process of ${id}`, async () => parseStat(await readFile(path, "utf8"))?.pid);
  }

  it("should not be able to read anything of each other", async () => {
    const script = "umask 0; echo hidden >secret; echo hidden >/tmp/secret; echo hidden; sleep 1000";
    const env = { PASSWORD: "hidden" };
    const value = { command: ["sh", "-c", script], env };
    const victim = await fixture.start({ task: { case: "process", value } });
    await fixture.written(victim, "hidden");
    const pid = await pidOf(victim);
    const kept = join(fixture.stateDirectory, "keeper/executions", victim);
    const paths = [
      ...[homeOf(victim), join(homeOf(victim), "secret"), join(kept, "stdout.pipe"), join(kept, "record.json")],
      ...[join(kept, "program"), join(kept, "private/tmp/secret"), join(kept, "stdout-0000000000000000")],
    ];
    const attack = { command: ["sh", "-c", ATTACK, "sh", String(pid), ...paths] };
    const attacker = await fixture.start({ task: { case: "process", value: attack } });
    await fixture.phase(attacker, "ended");
    await fixture.written(attacker, "tried");
    expect(await fixture.output(attacker)).toBe("tried\n");
    const [one, other] = [await userOf(victim), await userOf(attacker)];
    expect(one).not.toBe(other);
    for (const uid of [one, other]) expect(uid).toBeGreaterThanOrEqual(FIRST);
  });

  it("should only get write-only descriptors of their output", async () => {
    const id = await fixture.sh("ls /proc/self/fd | tr '\\n' ' '; grep flags /proc/self/fdinfo/1; sleep 1000");
    await fixture.written(id, "flags");
    const text = await fixture.output(id);
    // The last listed descriptor belongs to ls itself.
    expect(text).toMatch(/^0 1 2 3 flags:\s+0[0-7]*1\n$/);
  });

  it("should not be able to gain capabilities, and have an empty bounding set", async () => {
    const id = await fixture.sh("grep -E '^(NoNewPrivs|Cap|Groups)' /proc/self/status");
    await fixture.phase(id, "ended");
    await fixture.written(id, "NoNewPrivs:\t1\n");
    const text = await fixture.output(id);
    expect(text.match(/Cap\w+:\t0000000000000000\n/g)).toHaveLength(5);
    expect(text).toMatch(/Groups:\s*\n/);
  });

  it("should end with all processes that they started, even in other sessions", async () => {
    const start = "setsid sleep 1000 & (env -i setsid sleep 1000 &) & (env -i sh -c 'sleep 1000 & sleep 1000' &)";
    const id = await fixture.sh(`trap '' TERM; ${start}; echo begun; sleep 1000`, {
      resources: { millicores: 0 },
    });
    await fixture.written(id, "begun");
    const uid = await userOf(id);
    await until("its processes", async () => (await processesOfUser(uid)).length >= 6);
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED" });
    await until("their end", async () => (await processesOfUser(uid)).length === 0);
  });

  it("should end with the processes that their program left behind when it exits", async () => {
    const id = await fixture.sh("(env -i setsid sleep 1000 &) ; exit 3");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "EXITED", code: 3 });
    const uid = await userOf(id);
    await until("its end", async () => (await processesOfUser(uid)).length === 0);
  });

  it("should have a process limit, so that a fork bomb stays small and ends", async () => {
    const id = await fixture.sh("f() { f | f & }; f; while :; do sleep 0.1; done", { resources: { pids: 40 } });
    await fixture.written(id, "fork", "stderr");
    const uid = await userOf(id);
    expect((await processesOfUser(uid)).length).toBeLessThanOrEqual(40);
    // A failed fork ends the shell. If no fork failed, stop the shell.
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    await fixture.phase(id, "ended");
    await until("the end of all", async () => (await processesOfUser(uid)).length === 0);
  });

  it("should report an exit code or a signal", async () => {
    const scripts = { "exit 143": [143, null], "kill -TERM $$": [null, "SIGTERM"], "kill -KILL $$": [null, "SIGKILL"] };
    for (const [script, [code, signal]] of Object.entries(scripts)) {
      expect(await fixture.phase(await fixture.sh(script), "ended")).toMatchObject({ code, signal });
    }
  });

  it("should receive the signal that their job names", async () => {
    const id = await fixture.sh("trap 'echo caught; exit 0' TERM; echo begun; while :; do sleep 0.1; done");
    await fixture.written(id, "begun");
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED", code: 0 });
    await fixture.written(id, "caught");
  });

  it("should be found by the next keeper, and be checked in their namespaces", async () => {
    const check = {
      probe: { case: "command" as const, value: { command: ["sh", "-c", "[ -e /tmp/ready ] && [ -O $HOME ]"] } },
      interval: { seconds: 1n },
    };
    const id = await fixture.sh("while ! [ -e go ]; do sleep 0.05; done; touch /tmp/ready; sleep 1000", { check });
    await fixture.phase(id, "running");
    await fixture.open({ rules: OWN, ...options });
    await writeFile(join(homeOf(id), "go"), "");
    await until("a check that passes", () => {
      const { phase } = fixture.record(id).state;
      return phase.kind === "running" && phase.isReady;
    });
    if (options.isBare) await rm("/tmp/ready");
    else await expect(stat("/tmp/ready")).rejects.toThrow();
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    await fixture.phase(id, "ended");
  });
});

asRoot("executions of one user, which share a trust domain", () => {
  let fixture: KeeperFixture;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
  });

  afterEach(() => fixture.dispose());

  it("should not be able to take over each other's output, and end even without cgroups", async () => {
    await fixture.open({ isBare: true });
    const id = await fixture.sh("setsid sleep 1000 & echo $!; sleep 1000");
    await fixture.written(id, "\n");
    const pid = Number.parseInt(await fixture.output(id), 10);
    const path = join(fixture.stateDirectory, "keeper/executions", id, "run/child");
    const child = await until("its process", async () => parseStat(await readFile(path, "utf8")));
    const command = ["sh", "-c", ATTACK, "sh", String(child.pid)];
    const attacker = await fixture.start({ task: { case: "process", value: { command } } });
    await fixture.phase(attacker, "ended");
    await fixture.written(attacker, "tried");
    const text = await fixture.output(attacker);
    // The attack must work without protection. Otherwise the tests above prove nothing.
    expect(text).toContain("TAKEN OVER\n");
    expect(text).toContain("/environ\n");
    expect(text).not.toMatch(/READ$|fd\/1/m);
    const [daemon] = await Promise.all([readFile(`/proc/${pid}/stat`, "utf8").then(parseStat)]);
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    await fixture.phase(id, "ended");
    await until("the end of its daemon", async () => daemon !== null && !(await isAlive(daemon)));
  });

  it("should be ended through their namespace if there are no cgroups", async () => {
    if (!(await probeIsolation()).hasNamespaces) return;
    await fixture.open({ hasCgroups: false });
    const id = await fixture.sh("(env -i setsid sleep 1000 &) ; echo begun; readlink /proc/self/ns/pid; sleep 1000");
    await fixture.written(id, "pid:");
    const [space = ""] = /pid:\S+/.exec(await fixture.output(id)) ?? [];
    expect(await processesIn(space)).toBeGreaterThanOrEqual(3);
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    await fixture.phase(id, "ended");
    await until("the end of all", async () => (await processesIn(space)) === 0);
  });
});

async function processesIn(space: string): Promise<number> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const spaces = await Promise.all(names.map((name) => readlink(`/proc/${name}/ns/pid`).catch(() => "")));
  return spaces.filter((one) => one === space).length;
}

asRoot("a keeper that inherits descriptors", () => {
  it("should not pass them on", async () => {
    const fixture = await KeeperFixture.create();
    await fixture.open();
    await fixture.keeper.close();
    const secret = join(fixture.root, "inherited");
    await writeFile(secret, "inherited");
    const file = await open(secret);
    const settings = {
      ...{ stateDirectory: fixture.stateDirectory, directory: null, mayBeOwnUser: false, dockerHost: null },
      ...{ executors: ["process"], ...OWN, users: [], directories: [], secrets: null, secretGrants: [] },
    };
    // Use a low and a high descriptor, because Node.js closes only the low descriptors in child processes.
    const socket = keeperSocket(fixture.stateDirectory);
    const keeper = await KeeperProcess.start(settings, socket, { descriptors: { 7: file.fd, 200: file.fd } });
    const client = await KeeperClient.connect(socket);
    const command = ["sh", "-c", "ls -l /proc/self/fd; sleep 1000"];
    const { id, spec, specDigest } = identityOf({ task: { case: "process", value: { command } } });
    const reference = { id, specDigest: Buffer.from(specDigest, "hex") };
    const order = { reference, spec: Buffer.from(spec, "base64"), logId: "log-1", nodeId: "n" };
    await client.request({ case: "start", value: order });
    const text = await until("its output", async () => {
      const { reply } = await client.request({ case: "readOutput", value: { id } });
      return reply.case === "output" && reply.value.data.length > 0 && Buffer.from(reply.value.data).toString();
    });
    client.close();
    await keeper.end("SIGTERM");
    await file.close();
    // Open a keeper that adopts the previous keeper's executions, so that it ends them.
    await fixture.open({ rules: OWN });
    await fixture.dispose();
    expect(text).not.toContain("inherited");
  });
});

asRoot("a keeper that is not root", () => {
  it("should report that its executions share a trust domain and that it cannot end everything", async () => {
    const fixture = await KeeperFixture.create();
    const NOBODY = 65_534;
    // Check whether the user can read the checkout. In a directory that is closed to other users, only root can.
    const [program = "", ...words] = becoming({ name: null, uid: NOBODY, gid: NOBODY }, []);
    const isReadable = spawnSync(program, [...words, process.execPath, "--check", KEEPER_MAIN]).status === 0;
    if (isReadable) {
      await mkdir(fixture.stateDirectory);
      await chown(fixture.root, NOBODY, NOBODY);
      await chown(fixture.stateDirectory, NOBODY, NOBODY);
      const settings = {
        ...{ stateDirectory: fixture.stateDirectory, directory: null, mayBeOwnUser: true, dockerHost: null },
        ...{ executors: ["process"], ...OWN, users: [], directories: [], secrets: null, secretGrants: [] },
      };
      const socket = keeperSocket(fixture.stateDirectory);
      const keeper = await KeeperProcess.start(settings, socket, { userId: NOBODY });
      const client = await KeeperClient.connect(socket);
      const { reply } = await client.request({ case: "greet", value: {} });
      client.close();
      await keeper.end("SIGTERM");
      expect(reply).toMatchObject({ case: "greeting", value: { executors: ["process"], limits: [] } });
      expect(reply.case === "greeting" && reply.value.isolation).toMatchObject({
        ...{ identity: WorkIdentity.AGENT, containment: WorkContainment.MISSING, namespaces: [] },
        problem: expect.stringContaining("cannot create namespaces"),
      });
    }
    await rm(fixture.root, { recursive: true });
  });
});

describe("describeIsolation()", () => {
  const machine = { privileges: [], hasNamespaces: false, problem: "" };
  const own = { user: null, users: [], userIds: [FIRST, LAST] };

  it.each<[object, object, keyof typeof WorkIdentity, keyof typeof WorkContainment]>([
    [own, {}, "OWN", "USER"],
    [own, { hasNamespaces: true }, "OWN", "NAMESPACE"],
    // Several executions can run as the user web, so its user id does not identify the processes of one of them.
    [{ ...own, users: ["web"] }, {}, "OWN", "MISSING"],
    [{ ...own, user: "web" }, {}, "SHARED", "MISSING"],
    [{ ...own, user: "web" }, { hasNamespaces: true }, "SHARED", "NAMESPACE"],
    [{ ...own, userIds: null }, {}, "AGENT", "MISSING"],
  ])("should describe %j on a machine with %j as %s and %s", (rules, more, identity, containment) => {
    const facts = { rules: { ...own, ...rules }, isolation: { ...machine, ...more } };
    const described = describeIsolation({ ...facts, hasCgroups: false });
    expect(described.identity).toBe(WorkIdentity[identity]);
    expect(described.containment).toBe(WorkContainment[containment]);
    expect(describeIsolation({ ...facts, hasCgroups: true }).containment).toBe(WorkContainment.CGROUP);
  });
});

asRoot("closedGroupOf()", () => {
  it("should name the group through which a user can become root", async () => {
    expect(await closedGroupOf("root")).toBe("root");
    expect(await closedGroupOf("nobody")).toBeNull();
    expect(await closedGroupOf("no-such-user")).toBeNull();
    expect(await closedGroupOf("--help")).toBeNull();
  });

  it("should read all groups if one has no name, and fail if they cannot be read", async () => {
    await withProgram("id", "echo users docker 4242; exit 1", async () => {
      expect(await closedGroupOf("someone")).toBe("docker");
    });
    await withProgram("id", "exit 3", async () => {
      await expect(closedGroupOf("someone")).rejects.toThrow("the groups of someone cannot be read");
    });
  });
});

asRoot("UserIds", () => {
  it("should not give an id twice, and reuse it only when its processes and files are gone", async () => {
    const fixture = await KeeperFixture.create();
    const range = { first: 56_900, last: 56_903, shared: [join(fixture.root, "shared")] };
    await fixture.open();
    await mkdir(join(fixture.root, "shared"));
    const home = (name: string) => join(fixture.root, name);
    const open = () => new UserIds({ ...range, directory: fixture.root, clock: systemClock, log: silentLogger });
    const [one, other] = [open(), open()];
    const claim = async (ids: UserIds, name: string) => {
      await mkdir(home(name));
      return ids.claim(home(name));
    };
    const given = [await claim(one, "a"), await claim(other, "b"), await claim(one, "c"), await claim(other, "d")];
    expect(given).toEqual([56_900, 56_901, 56_902, 56_903]);
    await expect(one.claim(home("e"))).rejects.toThrow("Work.UserIds (56900-56903)");
    // The directory of `a` still exists. The other directories are removed, but `b` has left a file and `c` a process.
    for (const name of ["b", "c", "d"]) await rm(home(name), { recursive: true });
    await writeFile(join(fixture.root, "shared", "left"), "");
    await chown(join(fixture.root, "shared", "left"), 56_901, 56_901);
    const [program = "", ...words] = becoming({ name: null, uid: 56_902, gid: 56_902 }, []);
    const left = spawn(program, [...words, "sleep", "1000"]);
    try {
      await until("the process", async () => (await processesOfUser(56_902)).length > 0);
      const next = open();
      expect(await claim(next, "e")).toBe(56_903);
      await expect(next.claim(home("f"))).rejects.toThrow("in use");
    } finally {
      left.kill("SIGKILL");
      await fixture.dispose();
    }
  });

  it("should give no ids while accounts cannot be looked up, and all of them afterwards", async () => {
    const fixture = await KeeperFixture.create();
    await fixture.open();
    try {
      const range = { first: 56_910, last: 56_910, shared: [], directory: fixture.root };
      const ids = new UserIds({ ...range, clock: systemClock, log: silentLogger });
      await withProgram("getent", "exit 1", async () => {
        await expect(ids.claim(fixture.root)).rejects.toThrow("cannot determine whether the user id 56910");
      });
      expect(await ids.claim(fixture.root)).toBe(56_910);
    } finally {
      await fixture.dispose();
    }
  });
});

/** Run `act` while a shell script with this name is first in the PATH. */
async function withProgram(name: string, script: string, act: () => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "rollcall-programs-"));
  const path = process.env.PATH;
  try {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    process.env.PATH = `${folder}:${path}`;
    await act();
  } finally {
    process.env.PATH = path;
    await rm(folder, { recursive: true });
  }
}
