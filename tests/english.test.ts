import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { findPhrases, glossaryWords, refusedNames } from "../scripts/english/find-phrases.ts";
import { PHRASES } from "../scripts/english/phrases.ts";
import { workspaceRoot } from "./support/workspace.ts";

const CONTRIBUTING = readFileSync(join(workspaceRoot, "CONTRIBUTING.md"), "utf8");
const WORDS = glossaryWords(CONTRIBUTING);

describe("the glossary of CONTRIBUTING.md", () => {
  it("should have at most 40 entries, and words to refuse", () => {
    const [, section = ""] = /^## Glossary\n([\s\S]*?)^## /m.exec(CONTRIBUTING) ?? [];
    const entries = section.match(/^\| (?!term )[^-]/gm) ?? [];
    expect(entries.length).toBeGreaterThan(20);
    expect(entries.length).toBeLessThanOrEqual(40);
    expect(WORDS).toContainEqual(["stranger", "anonymous client"]);
  });
});

describe("findPhrases()", () => {
  it.each(PHRASES)("should refuse %j in comments, messages and pages", (phrase) => {
    const broken = phrase.replace(" ", "\n * ");
    expect(findPhrases("a.ts", `const a = 1;\n/**\n * The ${broken} x.\n */\n`, WORDS)).toHaveLength(1);
    expect(findPhrases("a.ts", `fail("It is ${phrase} x");\n`, WORDS)).toHaveLength(1);
    expect(findPhrases("a.py", `"""It is ${phrase} x."""\n`, WORDS)).toHaveLength(1);
    expect(findPhrases("a.tsx", `<p>Text ${phrase} x.</p>\n`, WORDS)).toHaveLength(1);
    expect(findPhrases("a.md", `Text ${phrase} x.\n`, WORDS)).toHaveLength(1);
  });

  it("should refuse the words of the glossary, and name their line and what to write", () => {
    const text = "const stranger = 1;\n\n// Refuse a stranger.\n";
    expect(findPhrases("a.ts", text, WORDS)).toEqual([{ line: 3, found: "stranger", write: "anonymous client" }]);
  });

  it("should leave code alone", () => {
    expect(findPhrases("a.ts", "const beside = shall(judge, 2);\n", WORDS)).toEqual([]);
    expect(findPhrases("a.md", "Text\n\n```sh\nshall beside\n```\n\n`whoever` [a](beside.md)\n", WORDS)).toEqual([]);
  });
});

describe("refusedNames()", () => {
  it("should refuse types with the prefixes that the glossary replaces", () => {
    expect(refusedNames("interface KnownJob {}\nclass HeldNode {}\nclass LiveNode {}\nKnownJob;", WORDS)).toEqual([
      "KnownJob",
      "HeldNode",
    ]);
  });
});
