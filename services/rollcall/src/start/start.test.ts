import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { bundledMain } from "../testing/bundled-main.ts";

const run = promisify(execFile);

let start: string;
let home: string;
beforeAll(async () => {
  start = join(dirname(await bundledMain()), "start.cjs");
  home = mkdtempSync(join(tmpdir(), "rollcall-start-"));
});
afterAll(() => rmSync(home, { recursive: true }));

const rollcall = (...words: readonly string[]) =>
  run(process.execPath, [start, ...words], { env: { HOME: home, PATH: process.env.PATH ?? "" } });
/** The files of compiled code. */
const kept = () =>
  readdirSync(join(home, ".cache/rollcall"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

describe("start.cjs", () => {
  it("should print the same with and without compiled code", async () => {
    const first = await rollcall("version");
    expect(first.stdout).toMatch(/^rollcall \d+\.\d+\.\d+/);
    expect(kept()).toHaveLength(1);
    expect(await rollcall("version")).toEqual(first);
    await expect(rollcall("node", "list", "--server", "127.0.0.1:1")).rejects.toMatchObject({ code: 3 });
  });

  it("should compile again when the cached code is damaged", async () => {
    for (const file of kept()) writeFileSync(file, "no code");
    const { stdout, stderr } = await rollcall("version");
    expect([stdout.slice(0, 9), stderr]).toEqual(["rollcall ", ""]);
  });

  it("should keep no code in a directory to which others can write", async () => {
    rmSync(join(home, ".cache/rollcall"), { recursive: true });
    mkdirSync(join(home, ".cache/rollcall"));
    chmodSync(join(home, ".cache/rollcall"), 0o777);
    await rollcall("version");
    expect(kept()).toEqual([]);
  });

  it("should start the program of the servers for its verbs", async () => {
    expect((await rollcall("serve", "--help")).stdout).toContain("serve");
    expect((await rollcall("config", "default")).stdout).toContain("Orchestrator");
    expect((await rollcall("__complete", "up", "")).stderr).toBe("");
  });
});
