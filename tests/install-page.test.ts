import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "./support/workspace.ts";

describe("the commands of docs/install.md", () => {
  it("should be run by the tests of packages, or say why not", () => {
    const page = readFileSync(join(workspaceRoot, "docs/install.md"), "utf8");
    const opened = [...page.matchAll(/^```(?!\n)(.*)$/gm)].map(([, words]) => words);
    expect(opened.length).toBeGreaterThan(5);
    expect(opened.filter((words) => !/^sh (test|untested)=[\w-]+$/.test(words ?? ""))).toEqual([]);
  });
});
