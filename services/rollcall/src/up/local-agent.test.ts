import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Clock, createLogger, systemClock } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { endProcess, type LogLine } from "../testing/rollcall-process.ts";
import { lockStateDirectory } from "./directory-lock.ts";
import { keepLocalAgent } from "./local-agent.ts";

let stateDirectory: string;
beforeEach(() => {
  stateDirectory = mkdtempSync(join(tmpdir(), "rollcall-local-"));
});
afterEach(() => rmSync(stateDirectory, { recursive: true }));

/** Run a program in the role of the agent. Pauses take no time. */
function keep(program: string) {
  const lines: LogLine[] = [];
  const ending = new AbortController();
  const clock: Clock = { ...systemClock, sleep: async (_ms, signal) => signal.throwIfAborted() };
  const log = createLogger({
    level: "info",
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  });
  const done = keepLocalAgent(
    {
      command: { program: process.execPath, args: ["-e", program] },
      commandForPeople: "rollcall agent",
      stateDirectory,
      env: process.env,
      log,
      clock,
      random: () => 0,
    },
    ending.signal,
  );
  const said = (msg: string, times = 1) => until(`"${msg}"`, () => lines.filter((line) => line.msg === msg)[times - 1]);
  return { lines, ending, done, said };
}

const STARTED = "local agent started";
const ENDED = "the local agent exited; restart it with this command";
const CRASHED = "the local agent crashed; restarting it";
const FOR_EVER = "setInterval(() => {}, 1000)";

describe("keepLocalAgent()", () => {
  it("should leave it stopped, and say how to start it", async () => {
    const { done, said } = keep(FOR_EVER);
    endProcess(Number((await said(STARTED)).pid), "SIGTERM");
    await done;
    expect(await said(ENDED)).toMatchObject({ signal: "SIGTERM", command: "rollcall agent" });
  });

  it("should start it again after a crash", async () => {
    const { done, said, ending } = keep("process.exit(1)");
    await said(CRASHED, 2);
    await said(STARTED, 3);
    ending.abort();
    await done;
  });

  it.each(["SIGSEGV", "SIGKILL"] as const)("should start it again after %s", async (signal) => {
    const { done, said, ending } = keep(FOR_EVER);
    endProcess(Number((await said(STARTED)).pid), signal);
    await said(STARTED, 2);
    ending.abort();
    await done;
  });

  it("should let it say goodbye at the end", async () => {
    const { done, said, ending, lines } = keep(
      `process.on("SIGTERM", () => process.exit(0)); process.send("ready"); ${FOR_EVER}`,
    );
    await said(STARTED);
    ending.abort();
    await done;
    expect(lines.map(({ msg }) => msg)).toEqual([STARTED]);
  });

  it("should not touch another user's agent", async () => {
    const unlock = await lockStateDirectory(stateDirectory, process.pid);
    const { done, lines } = keep(FOR_EVER);
    await done;
    expect(lines).toEqual([
      expect.objectContaining({ msg: "an agent is already running; leaving it unchanged", pid: process.pid }),
    ]);
    await unlock();
  });
});
