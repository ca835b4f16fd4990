import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { createCommandRunner } from "./run-command.ts";

const HANG = ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"];

describe("createCommandRunner()", () => {
  it("should return the program's output and exit code", async () => {
    const run = createCommandRunner();
    const script = "console.log('out'); console.error('err'); process.exitCode = 6";
    expect(await run(execPath, ["-e", script])).toEqual({
      kind: "finished",
      exitCode: 6,
      stdout: "out\n",
    });
  });

  it("should recognize a program that is missing or not executable", async () => {
    const run = createCommandRunner();
    expect(await run("no-such-program-here", [])).toEqual({ kind: "missing" });
    expect(await run("/etc", [])).toEqual({ kind: "missing" });
    expect(await run("/etc/passwd/program", [])).toEqual({ kind: "missing" });
  });

  it("should not report a program as missing if the system cannot start it now", async () => {
    const run = createCommandRunner();
    // This argument is longer than a command line can be. E2BIG, like EAGAIN and EMFILE, says nothing about the
    // program.
    const tooLong = "x".repeat(8 * 1024 * 1024);
    expect(await run(execPath, ["-e", tooLong])).toEqual({ kind: "no-answer", cause: "not-started" });
    expect(await run(execPath, ["-e", ""])).toMatchObject({ kind: "finished", exitCode: 0 });
  });

  it("should kill a program that hangs, even if it ignores polite signals", async () => {
    const run = createCommandRunner({ timeoutMs: 100, outputLimitBytes: 1024 });
    expect(await run(execPath, HANG)).toEqual({ kind: "no-answer", cause: "timeout" });
  });

  it("should also kill the children of a script that hangs", async () => {
    const run = createCommandRunner({ timeoutMs: 1_000, outputLimitBytes: 1024 });
    const folder = mkdtempSync(join(tmpdir(), "rollcall-run-command-"));
    const file = join(folder, "pid");
    const script = `sleep 600 & echo $! > ${file}; wait`;
    expect(await run("sh", ["-c", script])).toEqual({ kind: "no-answer", cause: "timeout" });
    const pid = Number(readFileSync(file, "utf8"));
    await until("the end of its child", () => !isAlive(pid));
    rmSync(folder, { recursive: true });
  });

  it("should kill a program that prints endlessly", async () => {
    const run = createCommandRunner({ timeoutMs: 30_000, outputLimitBytes: 1024 });
    const script = "setInterval(() => process.stdout.write('x'.repeat(4096)), 1)";
    expect(await run(execPath, ["-e", script])).toEqual({ kind: "no-answer", cause: "overflow" });
  });

  it("should run a program once at a time", async () => {
    const run = createCommandRunner({ timeoutMs: 30_000, outputLimitBytes: 1024 });
    const script =
      `const at = process.hrtime.bigint(); ` + `setTimeout(() => console.log(at + " " + process.hrtime.bigint()), 50)`;
    const results = await Promise.all([1, 2, 3].map(() => run(execPath, ["-e", script])));
    const spans = results
      .map((result) => (result.kind === "finished" ? result.stdout.trim().split(" ").map(BigInt) : []))
      .sort(([a = 0n], [b = 0n]) => (a < b ? -1 : 1));
    expect(spans).toHaveLength(3);
    for (const [index, [start = 0n]] of spans.entries()) {
      expect(start).toBeGreaterThanOrEqual(spans[index - 1]?.[1] ?? 0n);
    }
  });

  it("should answer busy after waiting longer than the limit for a run that cannot end", async () => {
    const run = createCommandRunner({ timeoutMs: 200, outputLimitBytes: 1024 });
    const first = run(execPath, HANG);
    // The second run starts to wait before the first is killed. The second run must not wait forever, even if the kill
    // has no effect.
    const second = run(execPath, ["-e", "console.log('late')"]);
    expect(await first).toEqual({ kind: "no-answer", cause: "timeout" });
    expect(["finished", "no-answer"]).toContain((await second).kind);
  });
});

/** Whether a process runs. A zombie has ended and only waits for its new parent to reap it. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
