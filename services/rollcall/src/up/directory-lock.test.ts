import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { AgentRunningError, lockDataDirectory, lockStateDirectory, runningAgent } from "./directory-lock.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "rollcall-lock-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("lockStateDirectory()", () => {
  it("should hold until released", async () => {
    expect(await runningAgent(directory)).toBeNull();
    const unlock = await lockStateDirectory(directory, process.pid);
    expect(await runningAgent(directory)).toBe(process.pid);
    await unlock();
    expect(await runningAgent(directory)).toBeNull();
  });

  it("should refuse while another process holds it, but not after that process was killed", async () => {
    const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    await once(other, "spawn");
    await lockStateDirectory(directory, other.pid ?? -1);
    await expect(lockStateDirectory(directory, process.pid)).rejects.toThrow(AgentRunningError);
    other.kill("SIGKILL");
    await once(other, "exit");
    await lockStateDirectory(directory, process.pid);
  });

  it("should not mistake a later process with the same id for the holder", async () => {
    writeFileSync(join(directory, "agent.pid"), JSON.stringify({ pid: process.ppid, started: "1" }));
    expect(await runningAgent(directory)).toBeNull();
  });

  it.each(["", "[]", '{"pid": "1"}'])("should treat a broken file (%j) as missing", async (text) => {
    writeFileSync(join(directory, "agent.pid"), text);
    await lockStateDirectory(directory, process.pid);
    expect(await runningAgent(directory)).toBe(process.pid);
  });
});

describe("lockDataDirectory()", () => {
  it("should name the directory and the process that uses it, in one line", async () => {
    const unlock = await lockDataDirectory(directory, process.pid);
    const text =
      `rollcall up is already running in ${directory}, as process ${process.pid}: ` +
      "stop that process, or use another --data-dir";
    await expect(lockDataDirectory(directory, process.ppid)).rejects.toThrow(text);
    // The agent's lock is a different lock, so both can exist.
    await lockStateDirectory(directory, process.ppid);
    expect(readdirSync(directory).sort()).toEqual(["agent.pid", "up.pid"]);
    await unlock();
    await lockDataDirectory(directory, process.ppid);
  });

  it("should lock it for one of two concurrent processes", async () => {
    const both = await Promise.allSettled([
      lockDataDirectory(directory, process.pid),
      lockDataDirectory(directory, process.ppid),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it("should replace one that has ended", async () => {
    writeFileSync(join(directory, "up.pid"), JSON.stringify({ pid: process.ppid, started: "1" }));
    await lockDataDirectory(directory, process.pid);
    await expect(lockDataDirectory(directory, process.ppid)).rejects.toThrow(`process ${process.pid}`);
  });
});
