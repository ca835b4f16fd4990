import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { controlPlanesHere } from "./running-here.ts";

describe("controlPlanesHere()", () => {
  let root: string;

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "rollcall-proc-"));
  });

  afterEach(() => rmSync(root, { recursive: true, force: true }));

  /** Add a process as /proc shows it. */
  function addProcess(pid: number, words: readonly string[], env: Readonly<Record<string, string>>, cwd = root): void {
    const folder = join(root, String(pid));
    mkdirSync(folder);
    writeFileSync(join(folder, "cmdline"), words.map((word) => `${word}\0`).join(""));
    writeFileSync(
      join(folder, "environ"),
      Object.entries(env)
        .map(([name, value]) => `${name}=${value}\0`)
        .join(""),
    );
    symlinkSync(cwd, join(folder, "cwd"));
  }

  function addData(name: string, pid: number): string {
    const directory = join(root, name);
    mkdirSync(directory);
    const run = { pid, server: `127.0.0.1:${pid}`, agents: "127.0.0.1:1", probes: "127.0.0.1:2" };
    writeFileSync(join(directory, "run.json"), JSON.stringify(run));
    return directory;
  }

  it("should find the data directory of each running `up` by the rule of `up`", () => {
    const directories = [addData("flag", 7), addData("joined", 8), addData("variable", 9), addData(".rollcall", 10)];
    addProcess(7, ["node", "main.js", "up", "--data-dir", "flag"], {});
    addProcess(8, ["node", "main.js", "up", "--data-dir=joined"], {});
    addProcess(9, ["node", "main.js", "up"], { ROLLCALL_DATA_DIR: "variable" });
    addProcess(10, ["node", "main.js", "up"], { HOME: "/none" });
    const found = controlPlanesHere({ userId: process.getuid?.() ?? null, processFolder: root });
    const all = found.map(({ dataDirectory }) => dataDirectory);
    expect(all.toSorted()).toEqual(directories.toSorted());
    expect(found.map(({ server }) => server)).toContain("127.0.0.1:7");
  });

  it("should leave out other processes, and data of a control plane that has ended", () => {
    addData("ended", 6);
    addProcess(7, ["node", "main.js", "up", "--data-dir", "ended"], {});
    addProcess(8, ["sleep", "1"], {});
    mkdirSync(join(root, "9"));
    expect(controlPlanesHere({ userId: null, processFolder: root })).toEqual([]);
    expect(controlPlanesHere({ userId: null })).toEqual([]);
    expect(controlPlanesHere({ userId: null, processFolder: join(root, "none") })).toEqual([]);
  });
});
