import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  type Fault,
  FaultFinder,
  faultOfDirectory,
  faultOfSpawn,
  faultsAfter,
  type KnownFaults,
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
    // A machine without the program says nothing about the next one.
    ["ENOENT", undefined],
  ])("should take %s for %s", (code, reason) => {
    expect(faultOfSpawn(code)?.reason).toBe(reason);
  });
});

describe("faultsAfter()", () => {
  const FULL: Fault = { reason: "DISK_FULL", message: "full" };
  const after = (known: KnownFaults, ...found: Fault[]) => faultsAfter(known, found);

  it("should report a fault at once, and as over only when it was not found twice in a row", () => {
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

  it("should find nothing where all is well, a directory that is gone, and each reason once", async () => {
    expect(await new FaultFinder([root]).find()).toEqual([]);
    const gone = [join(root, "a"), join(root, "b")];
    expect(await new FaultFinder([root, ...gone]).find()).toMatchObject([
      { reason: "DISK_FAILED", message: expect.stringContaining("ENOENT") },
    ]);
  });

  it("should report a write that does not end, and ask again only when it has", async () => {
    // No write ends within no time.
    const finder = new FaultFinder([root], 0);
    expect(await finder.find()).toMatchObject([
      { reason: "DISK_FAILED", message: expect.stringContaining("not ended") },
    ]);
  });
});
