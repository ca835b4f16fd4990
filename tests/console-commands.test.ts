import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { readSources, workspaceRoot } from "./support/workspace.ts";

/** The reference of the command line. It is generated from the program itself. */
const REFERENCE = readFileSync(join(workspaceRoot, "docs/reference/cli.md"), "utf8");
const sections = new Map(
  REFERENCE.split(/^#+ rollcall /m).map((text) => {
    const [title = ""] = text.split("\n", 1);
    return [title, text] as const;
  }),
);

/** A command that a page of the console offers to copy. Only its literal words are known. */
interface Copied {
  readonly where: string;
  readonly words: readonly string[];
  readonly flags: readonly string[];
}

function copiedCommands(): readonly Copied[] {
  const sources = readSources("services/console/web/src").filter(({ path }) => !path.endsWith(".test.ts"));
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\bcommand\(\s*"/g)].map(({ index }) => {
      const words = [...callAt(text, index).matchAll(/"([^"]*)"/g)].map(([, word = ""]) => word);
      const firstFlag = words.findIndex((word) => !/^[a-z]/.test(word));
      return {
        where: path,
        words: firstFlag === -1 ? words : words.slice(0, firstFlag),
        flags: words.filter((word) => word.startsWith("--")),
      };
    }),
  );
}

/** Return the text of a call, from its name to its closing bracket. */
function callAt(text: string, start: number): string {
  let depth = 0;
  for (let at = text.indexOf("(", start); at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")") depth -= 1;
    if (depth === 0) return text.slice(start, at);
  }
  return text.slice(start);
}

describe("the commands that the console offers to copy", () => {
  const copied = copiedCommands();

  it("should exist in the command line, with their options", () => {
    expect(copied.length).toBeGreaterThan(20);
    const wrong = copied.flatMap(({ where, words, flags }) => {
      const [noun = "", verb = ""] = words;
      const section = sections.get(`${noun} ${verb}`) ?? sections.get(noun);
      if (section === undefined) return [`${where}: ${words.join(" ")}`];
      // If the verb is not a literal, accept the options of any verb of the noun.
      const all = sections.has(`${noun} ${verb}`) ? section : ofNoun(noun);
      return flags.filter((flag) => !all.includes(flag)).map((flag) => `${where}: ${words.join(" ")} ${flag}`);
    });
    expect(wrong).toEqual([]);
  });
});

function ofNoun(noun: string): string {
  return [...sections].flatMap(([title, text]) => (title.split(" ")[0] === noun ? [text] : [])).join("\n");
}
