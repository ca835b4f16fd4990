import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { ownerInCgroup } from "../process/process-program.ts";
import { Cgroup } from "./cgroup.ts";
import { openCgroups } from "./cgroup-hierarchy.ts";

const run = promisify(execFile);

describe("a tree of cgroups", () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "rollcall-cgroup-"));
  });

  afterEach(() => rm(root, { recursive: true, force: true }));

  const text = (...path: string[]) => readFile(join(root, ...path), "utf8");
  const limits = { millicores: 250, memoryBytes: 1_048_576, pids: 100 };

  it("should be limited by the files of version 2", async () => {
    const place = join(root, "rollcall/n1");
    const hierarchy = {
      version: 2,
      roots: { kill: place, cpu: place, memory: place, pids: place },
      limits: ["cpu", "memory", "pids"],
    } as const;
    const group = new Cgroup(hierarchy, "e1");
    expect(group.places).toEqual([join(place, "e1")]);
    await group.create(limits);
    expect(await text("rollcall/n1/e1/cpu.max")).toBe("25000 100000");
    expect(await text("rollcall/n1/e1/memory.max")).toBe("1048576");
    // The limit is 100 for the execution, and 2 for the processes that supervise it.
    expect(await text("rollcall/n1/e1/pids.max")).toBe("102");
    expect(await text("rollcall/n1/e1/memory.oom.group")).toBe("1");
    await writeFile(join(place, "e1/memory.events"), "low 0\noom 2\noom_kill 1\n");
    expect(await group.wasOutOfMemory()).toEqual({ kind: "yes" });
    await group.kill();
    expect(await text("rollcall/n1/e1/cgroup.kill")).toBe("1");
  });

  it("should be limited by the files of version 1", async () => {
    const of = (name: string) => join(root, name);
    const hierarchy = {
      version: 1,
      roots: { kill: of("pids"), cpu: of("cpu"), memory: of("memory"), pids: of("pids") },
      limits: ["cpu", "memory", "pids"],
    } as const;
    const group = new Cgroup(hierarchy, "e1");
    expect(group.places).toEqual([join(of("pids"), "e1"), join(of("cpu"), "e1"), join(of("memory"), "e1")]);
    await group.create({ ...limits, millicores: 5 });
    expect(await text("cpu/e1/cpu.cfs_quota_us")).toBe("1000");
    expect(await text("cpu/e1/cpu.shares")).toBe("5");
    expect(await text("pids/e1/pids.max")).toBe("102");
    expect(await text("memory/e1/memory.limit_in_bytes")).toBe("1048576");
    await writeFile(join(root, "memory/e1/memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    expect(await group.wasOutOfMemory()).toEqual({ kind: "no" });
  });

  it("should report unknown if it cannot read its files", async () => {
    const hierarchy = { version: 1, roots: { kill: root, cpu: null, memory: root, pids: null }, limits: [] } as const;
    const group = new Cgroup(hierarchy, "e1");
    await mkdir(join(root, "e1/cgroup.procs"), { recursive: true });
    expect(await group.wasOutOfMemory()).toEqual({
      kind: "unknown",
      why: "memory.oom_control of its cgroup cannot be read: ENOENT",
    });
    await writeFile(join(root, "e1/memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\n");
    expect(await group.wasOutOfMemory()).toMatchObject({ kind: "unknown" });
    await expect(group.processes()).rejects.toMatchObject({ code: "EISDIR" });
    await expect(group.kill()).rejects.toMatchObject({ code: "EISDIR" });
    expect(await ownerInCgroup(1, group)).toEqual({
      kind: "unknown",
      why: "the processes of its cgroup cannot be read: EISDIR",
    });
    // A cgroup that does not exist has no processes.
    await new Cgroup(hierarchy, "e2").kill();
  });

  it("should not exist without a memory controller and without permission to create cgroups", async () => {
    await mkdir(join(root, "unified"));
    await writeFile(join(root, "unified/cgroup.controllers"), "cpu pids\n");
    const mounts = `cgroup2 ${join(root, "unified")} cgroup2 rw 0 0\ncgroup /no/such cgroup rw,cpu 0 0\n`;
    expect(await openCgroups("n1", mounts)).toBeNull();
  });
});

// The kernel offers version 2 even if the machine uses version 1. In that case, version 2 has only the controllers
// that version 1 does not use, usually without memory and cpu.
needsRoot().describe("a cgroup of version 2, made by the kernel", () => {
  let mount: string;

  beforeEach(async () => {
    mount = await mkdtemp(join(tmpdir(), "rollcall-cgroup2-"));
    await run("mount", ["-t", "cgroup2", "none", mount]);
  });

  afterEach(async () => {
    await run("umount", [mount]);
    await rm(mount, { recursive: true });
  });

  it("should kill its processes and their children, and remove it", async () => {
    const place = join(mount, `rollcall-test-${process.pid}`);
    const roots = { kill: place, cpu: null, memory: null, pids: null };
    const group = new Cgroup({ version: 2, roots, limits: [] }, "e1");
    await group.create({ millicores: 100, memoryBytes: 0, pids: 10 });
    // The script enters the cgroup as a shim does, before it starts anything.
    const script = 'echo 0 >"$0/cgroup.procs" && setsid sleep 1000 & echo 0 >"$0/cgroup.procs"; echo in; wait';
    const child = spawn("sh", ["-c", script, join(place, "e1")], { stdio: ["ignore", "pipe", "ignore"] });
    await once(child.stdout, "data");
    await until("both to be in it", async () => (await group.processes()).length >= 2);
    const ended = once(child, "exit");
    await group.end();
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(await readdir(place).then((names) => names.includes("e1"))).toBe(false);
    await rmdir(place);
  });
});
