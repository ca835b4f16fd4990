import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { readSources, workspaceRoot } from "./support/workspace.ts";

/** What the command line has, which is written from the program itself. */
const REFERENCE = readFileSync(join(workspaceRoot, "docs/reference/cli.md"), "utf8");
const sections = new Map(
  REFERENCE.split(/^#+ rollcall /m).map((text) => {
    const [title = ""] = text.split("\n", 1);
    return [title, text] as const;
  }),
);

/** A command that the pages of the console let people copy, as far as its words are written out. */
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

/** A call from its name to the bracket that closes it. */
function callAt(text: string, start: number): string {
  let depth = 0;
  for (let at = text.indexOf("(", start); at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")") depth -= 1;
    if (depth === 0) return text.slice(start, at);
  }
  return text.slice(start);
}

describe("the commands that the console lets people copy", () => {
  const copied = copiedCommands();

  it("should be commands of the command line, with its options", () => {
    expect(copied.length).toBeGreaterThan(20);
    const wrong = copied.flatMap(({ where, words, flags }) => {
      const [noun = "", verb = ""] = words;
      const section = sections.get(`${noun} ${verb}`) ?? sections.get(noun);
      if (section === undefined) return [`${where}: ${words.join(" ")}`];
      // A verb that is no literal: its options are those of any verb of the noun.
      const all = sections.has(`${noun} ${verb}`) ? section : ofNoun(noun);
      return flags.filter((flag) => !all.includes(flag)).map((flag) => `${where}: ${words.join(" ")} ${flag}`);
    });
    expect(wrong).toEqual([]);
  });
});

function ofNoun(noun: string): string {
  return [...sections].flatMap(([title, text]) => (title.split(" ")[0] === noun ? [text] : [])).join("\n");
}
