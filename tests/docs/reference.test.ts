import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { ErrorReason } from "../../libs/api/src/gen/rollcall/node/v1/error_reason_pb.ts";
import { ADVICE, ADVICE_BY_CODE } from "../../scripts/reference/error-advice.ts";
import { API_FOLDER, generatedPages } from "../../scripts/reference/generated-pages.ts";
import { helpText, prose } from "../../scripts/reference/markdown.ts";
import { workspaceRoot } from "../support/workspace.ts";

const read = (path: string) => readFileSync(join(workspaceRoot, path), "utf8");

describe("the pages of the reference", () => {
  let pages: ReadonlyMap<string, string>;

  beforeAll(async () => {
    pages = await generatedPages();
  });

  it("should be what `make gen` writes", () => {
    const stale = [...pages].flatMap(([path, text]) => (readOrNothing(path) === text ? [] : [path]));
    // If this fails, run `make gen`.
    expect(stale).toEqual([]);
  });

  it("should have no page of a removed package", () => {
    const there = readdirSync(join(workspaceRoot, API_FOLDER)).map((name) => `${API_FOLDER}/${name}`);
    expect(there.sort()).toEqual([...pages.keys()].filter((path) => path.startsWith(API_FOLDER)).sort());
  });

  it("should explain every reason of refusals, and only those that exist", () => {
    const reasons = Object.keys(ErrorReason).filter((name) => Number.isNaN(Number(name)) && name !== "UNSPECIFIED");
    const shown = [...(pages.get("docs/reference/errors.md") ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(
      ([, name]) => name,
    );
    expect(shown.sort()).toEqual(reasons.sort());
    expect(Object.keys(ADVICE).sort()).toEqual(reasons.sort());
    const advice = [...Object.values(ADVICE), ...Object.values(ADVICE_BY_CODE)];
    expect(advice.filter((one) => !one.endsWith("."))).toEqual([]);
  });

  it("should advise only commands that exist", () => {
    const headings = [...(pages.get("docs/reference/cli.md") ?? "").matchAll(/^#+ rollcall (.+)$/gm)].map(
      ([, words = ""]) => words,
    );
    const named = Object.values(ADVICE).flatMap((advice) =>
      [...advice.matchAll(/`rollcall ([a-z -]+?)(?: [A-Z-].*?)?`/g)].map(([, words = ""]) => words.split(" --")[0]),
    );
    expect(named.length).toBeGreaterThan(30);
    // Remove the argument of `serve`, which is the name of a service.
    expect(named.filter((words = "") => !headings.includes(words.replace(/^(serve) .*/, "$1")))).toEqual([]);
  });

  it("should name the commands that pages tell people to type", () => {
    const cli = pages.get("docs/reference/cli.md") ?? "";
    for (const words of ["rollcall node drain", "rollcall job run", "rollcall policy preview", "rollcall up"]) {
      expect(cli).toMatch(new RegExp(`^#+ ${words}$`, "m"));
    }
    // The page has the arguments and flags of a verb, and the notes after its help.
    expect(cli).toMatch(/\| `--filter-approval <states>` \|/);
    expect(cli).toContain("rollcall.registry.v1.ListNodesResponse");
  });
});

describe("prose()", () => {
  it("should escape markup of the site, except in code", () => {
    expect(prose("a <b> `<c>` *d*")).toBe("a &lt;b> `<c>` \\*d\\*");
  });

  it("should begin no line with a list marker", () => {
    const lines = prose(`${"x".repeat(110)} yyyyyyyy - z`).split("\n");
    expect(lines).toEqual(["x".repeat(110), "yyyyyyyy - z"]);
  });
});

describe("helpText()", () => {
  it("should keep indented lines unchanged", () => {
    expect(helpText("Examples:\n  one\n  two\n\nAnd more.").join("\n")).toBe(
      "Examples:\n\n```text\none\ntwo\n```\n\nAnd more.\n",
    );
  });
});

function readOrNothing(path: string): string | null {
  try {
    return read(path);
  } catch {
    return null;
  }
}
