import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { AgentRunningError, lockStateDirectory, runningAgent } from "./agent-lock.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "rollcall-lock-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("lockStateDirectory()", () => {
  it("should hold until it is given back", async () => {
    expect(await runningAgent(directory)).toBeNull();
    const unlock = await lockStateDirectory(directory, process.pid);
    expect(await runningAgent(directory)).toBe(process.pid);
    await unlock();
    expect(await runningAgent(directory)).toBeNull();
  });

  it("should refuse while another process holds it, and not after that was killed", async () => {
    const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    await once(other, "spawn");
    await lockStateDirectory(directory, other.pid ?? -1);
    await expect(lockStateDirectory(directory, process.pid)).rejects.toThrow(AgentRunningError);
    other.kill("SIGKILL");
    await once(other, "exit");
    await lockStateDirectory(directory, process.pid);
  });

  it("should not take a process that got the same id later for the holder", async () => {
    writeFileSync(join(directory, "agent.pid"), JSON.stringify({ pid: process.ppid, started: "1" }));
    expect(await runningAgent(directory)).toBeNull();
  });

  it.each(["", "[]", '{"pid": "1"}'])("should take a broken file (%j) for none", async (text) => {
    writeFileSync(join(directory, "agent.pid"), text);
    await lockStateDirectory(directory, process.pid);
    expect(await runningAgent(directory)).toBe(process.pid);
  });
});
