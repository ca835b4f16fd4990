import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "./support/workspace.ts";

describe.each([
  ["install", 6],
  ["kubernetes", 3],
  ["nginx", 1],
])("the commands of docs/%s.md", (name, least) => {
  it("should be run by a test, or say why not", () => {
    const page = readFileSync(join(workspaceRoot, `docs/${name}.md`), "utf8");
    const opened = [...page.matchAll(/^```(?!\n)(?!yaml|nginx)(.*)$/gm)].map(([, words]) => words);
    expect(opened.length).toBeGreaterThanOrEqual(least);
    expect(opened.filter((words) => !/^sh (test|untested)=[\w-]+$/.test(words ?? ""))).toEqual([]);
  });
});
