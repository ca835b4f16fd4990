import { describe, expect, it } from "@jest/globals";
import { startTasks } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { eventually, ManualClock } from "@rollcall/testkit/time";
import type { CgroupHierarchy } from "./cgroup-hierarchy.ts";
import { CgroupWatch } from "./cgroup-watch.ts";

const ALL: CgroupHierarchy = {
  version: 2,
  roots: { kill: "/c", cpu: "/c", memory: "/c", pids: "/c" },
  limits: ["cpu", "memory", "pids"],
};
const WITHOUT_MEMORY: CgroupHierarchy = { ...ALL, limits: ["cpu", "pids"] };

/** Create a watch that searches for cgroups when the test calls look(). */
async function watch(first: CgroupHierarchy | null) {
  let found = first;
  let looks = 0;
  let changes = 0;
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const open = async () => {
    looks += 1;
    return found;
  };
  const cgroups = await CgroupWatch.open({ open, clock, log });
  cgroups.subscribe(() => {
    changes += 1;
  });
  const running = startTasks([cgroups.task], { log, clock });
  return {
    cgroups,
    lines,
    changes: () => changes,
    close: () => running.close(),
    look: async (next: CgroupHierarchy | null) => {
      await eventually(() => expect(clock.sleepers).toBe(1));
      found = next;
      const before = looks;
      clock.advance(10_000);
      await eventually(() => expect([looks, clock.sleepers]).toEqual([before + 1, 1]));
      return cgroups.current;
    },
  };
}

describe("CgroupWatch", () => {
  it("should notice at once when cgroups become available", async () => {
    const { cgroups, look, changes, close } = await watch(null);
    expect(cgroups.current).toBeNull();
    expect(await look(ALL)).toEqual(ALL);
    expect(await look({ ...ALL })).toEqual(ALL);
    expect(changes()).toBe(1);
    await close();
  });

  it.each([null, WITHOUT_MEMORY])("should report lost cgroups only after the third check: %j", async (less) => {
    const { look, changes, lines, close } = await watch(ALL);
    expect(await look(less)).toEqual(ALL);
    expect(await look(less)).toEqual(ALL);
    expect(await look(ALL)).toEqual(ALL);
    expect(await look(less)).toEqual(ALL);
    expect(await look(less)).toEqual(ALL);
    expect(changes()).toBe(0);
    expect(await look(less)).toEqual(less);
    expect(changes()).toBe(1);
    expect(lines).toContainEqual(expect.objectContaining({ level: "error", limits: less?.limits ?? [] }));
    expect(await look(ALL)).toEqual(ALL);
    await close();
  });
});
