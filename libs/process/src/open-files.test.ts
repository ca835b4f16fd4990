import { describe, expect, it } from "@jest/globals";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { createMetrics, renderMetrics } from "./metrics.ts";
import { openFilesLimit, parseLimit, watchOpenFiles } from "./open-files.ts";

describe("openFilesLimit()", () => {
  it("should be the kernel's soft limit", () => {
    const text = (soft: string) => `Limit  Soft  Hard  Units\nMax open files  ${soft}  4096  files\n`;
    expect(parseLimit(text("1024"))).toBe(1_024);
    expect(parseLimit(text("unlimited"))).toBeNull();
    expect(parseLimit("")).toBeNull();
    expect(openFilesLimit()).toBeGreaterThan(64);
  });
});

describe("watchOpenFiles()", () => {
  it("should end connections while no descriptors are left, and log it once a minute", async () => {
    const clock = new ManualClock();
    const { log, lines } = captureLog();
    const metrics = createMetrics({ defaults: false });
    let isOut = false;
    const asked: number[] = [];
    const spare = (most: number) => {
      asked.push(most);
      return 3;
    };
    const task = watchOpenFiles({
      servers: [{ spare }, { spare }],
      limit: 1_024,
      clock,
      log,
      metrics,
      probe: () => {
        if (isOut) throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
      },
    });
    const ending = new AbortController();
    const running = task.run(ending.signal, () => {}).catch(() => {});
    await settle();
    expect(asked).toEqual([]);
    isOut = true;
    await clock.pass(3_000);
    expect(asked).toEqual([64, 64, 64, 64, 64, 64]);
    expect(lines).toMatchObject([{ level: "error", code: "EMFILE", limit: 1_024, connections_ended: 6 }]);
    await clock.pass(60_000);
    expect(lines).toHaveLength(2);
    isOut = false;
    const before = asked.length;
    await clock.pass(3_000);
    expect(asked).toHaveLength(before);
    expect(await renderMetrics(metrics)).toContain("rollcall_out_of_descriptors_total 63");
    ending.abort();
    await running;
  });
});
