import { describe, expect, it } from "@jest/globals";
import { isKillOf, kernelKilled } from "./kernel-log.ts";

const ID = "9785a9508c48";
const RECORD =
  `6,901,88162236319,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,` +
  `oom_memcg=/libpod_parent/libpod-${ID},task_memcg=/libpod_parent/libpod-${ID},task=tail,pid=19259,uid=0\n`;

describe("isKillOf()", () => {
  it("should detect that a cgroup of a container ran out of memory", () => {
    expect(isKillOf(RECORD, ID)).toBe(true);
    expect(isKillOf(RECORD, "another")).toBe(false);
  });

  it("should ignore text that a program could write, and other cgroups", () => {
    expect(isKillOf(`6,1,1,-;${ID}[1]: segfault`, ID)).toBe(false);
    expect(isKillOf(RECORD.replace(`oom_memcg=/libpod_parent/libpod-${ID}`, "oom_memcg=/"), ID)).toBe(false);
  });
});

describe("kernelKilled()", () => {
  it("should return unknown if the log cannot be read", async () => {
    expect(await kernelKilled(ID, "/no/such/log")).toEqual({
      kind: "unknown",
      why: "the kernel's log cannot be read: ENOENT",
    });
  });
});
