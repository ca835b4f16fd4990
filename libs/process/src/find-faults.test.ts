import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import {
  type Fault,
  FaultFinder,
  faultOfDirectory,
  faultOfSpawn,
  faultsAfter,
  type PresentFaults,
} from "./find-faults.ts";

describe("faultOfDirectory()", () => {
  it.each([
    ["ENOSPC", "DISK_FULL"],
    ["EDQUOT", "DISK_FULL"],
    ["EROFS", "DISK_READ_ONLY"],
    ["EIO", "DISK_FAILED"],
    ["ENOENT", "DISK_FAILED"],
    ["EACCES", "DISK_FAILED"],
    ["", "DISK_FAILED"],
    ["EMFILE", "OUT_OF_DESCRIPTORS"],
    ["ENFILE", "OUT_OF_DESCRIPTORS"],
  ])("should take %s for %s, and name it", (code, reason) => {
    const fault = faultOfDirectory("/state", code);
    expect(fault.reason).toBe(reason);
    expect(fault.message).toContain(code);
  });
});

describe("faultOfSpawn()", () => {
  it.each([
    ["EAGAIN", "OUT_OF_PROCESSES"],
    ["ENOMEM", "OUT_OF_PROCESSES"],
    ["EMFILE", "OUT_OF_DESCRIPTORS"],
    // A missing program does not mean that no process can be started.
    ["ENOENT", undefined],
  ])("should take %s for %s", (code, reason) => {
    expect(faultOfSpawn(code)?.reason).toBe(reason);
  });
});

describe("faultsAfter()", () => {
  const FULL: Fault = { reason: "DISK_FULL", message: "full" };
  const after = (known: PresentFaults, ...found: Fault[]) => faultsAfter(known, found);

  it("should report a fault immediately, and its end only after two probes without it", () => {
    const found = after(new Map(), FULL);
    const once = after(found);
    expect([...found.keys(), ...once.keys()]).toEqual(["DISK_FULL", "DISK_FULL"]);
    expect(after(after(once, FULL)).size).toBe(1);
    expect(after(once).size).toBe(0);
  });
});

describe("FaultFinder", () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "rollcall-faults-"));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it("should find nothing on a healthy machine, a missing directory, and each reason once", async () => {
    expect(await new FaultFinder([root]).find()).toEqual([]);
    const gone = [join(root, "a"), join(root, "b")];
    expect(await new FaultFinder([root, ...gone]).find()).toMatchObject([
      { reason: "DISK_FAILED", message: expect.stringContaining("ENOENT") },
    ]);
  });

  it("should report a write that does not end, not repeat it until it has, and notice the end", async () => {
    // A FIFO cannot be opened for writing until something opens it for reading, so the probe hangs.
    const probe = join(root, `.probe-${process.pid}`);
    execFileSync("mkfifo", [probe]);
    const finder = new FaultFinder([root], { limitMs: 100 });
    const findInDisk = async () => (await finder.find()).filter(({ reason }) => reason === "DISK_FAILED");
    const late = [{ reason: "DISK_FAILED", message: `a write to ${root} has not ended within 0.1 s` }];
    expect([await findInDisk(), await findInDisk()]).toEqual([late, late]);
    const reader = await open(probe, constants.O_RDONLY | constants.O_NONBLOCK);
    await until("its end", async () => (await findInDisk()).length === 0);
    await reader.close();
  });

  it("should report a process that hangs, start no other until it ends, and notice the end", async () => {
    const [program, starts, release] = [join(root, "program"), join(root, "starts"), join(root, "release")];
    const words = `echo started >> ${starts}; while ! [ -e ${release} ]; do sleep 0.02; done`;
    await writeFile(program, `#!/bin/sh\n${words}\n`, { mode: 0o755 });
    const finder = new FaultFinder([], { limitMs: 100, program });
    const late = [{ reason: "OUT_OF_PROCESSES", message: `a new process (${program}) has not ended within 0.1 s` }];
    expect([await finder.find(), await finder.find()]).toEqual([late, late]);
    await writeFile(release, "");
    await until("its end", async () => (await finder.find()).length === 0);
    expect(await readFile(starts, "utf8")).toBe("started\n");
  });
});
