import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
const kept = () => readdirSync(join(home, ".cache/rollcall"));

describe("start.cjs", () => {
  it("should say the same with compiled code and without, and keep it by noun", async () => {
    const first = await rollcall("version");
    expect(first.stdout).toMatch(/^rollcall \d+\.\d+\.\d+/);
    expect(kept()).toEqual([expect.stringMatching(/^[0-9a-f]{16}-v\d+\.\d+\.\d+-\w+-version\.code$/)]);
    expect(await rollcall("version")).toEqual(first);
    await expect(rollcall("node", "list", "--server", "127.0.0.1:1")).rejects.toMatchObject({ code: 1 });
    expect(kept()).toHaveLength(2);
  });

  it("should do without code that Node.js does not take, and replace it", async () => {
    const name = kept().find((it) => it.endsWith("-version.code")) ?? "";
    const file = join(home, ".cache/rollcall", name);
    writeFileSync(file, "no code");
    expect((await rollcall("version")).stderr).toBe("");
    expect(readFileSync(file).length).toBeGreaterThan(1_000);
  });

  it("should start the program of the servers for its verbs", async () => {
    expect((await rollcall("serve", "--help")).stdout).toContain("serve");
    expect((await rollcall("config", "default")).stdout).toContain("Orchestrator");
    expect((await rollcall("__complete", "up", "")).stderr).toBe("");
  });
});
