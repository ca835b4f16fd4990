import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "@jest/globals";
import { commandBlocks } from "./readme-blocks.ts";
import { workspaceRoot } from "./workspace.ts";

/** What each block of a page must print, in the order in which the page has them: each builds on those before. */
export type Expected = readonly (readonly [name: string, output: RegExp])[];

/** Where a page's commands run. */
export interface CommandPlace {
  /** A folder in which they work as in a checkout; see layOutCheckout(). */
  readonly checkout: string;
  /** Texts of the page that are others here, such as addresses. */
  readonly instead: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const COMMAND_LIMIT_MS = 180_000;
const MOST_OUTPUT = 16 * 1024 * 1024;

/** What a page needs besides its own commands. */
export interface PageOptions {
  /** Blocks for which it says no are skipped. */
  readonly isRunnable?: (name: string) => boolean;
  /** What the reader has done before a block, and no block does: it is started here. */
  readonly before?: Readonly<Record<string, () => Promise<unknown>>>;
}

/**
 * Test every block of a page that is opened with "```sh test=NAME", one after the other, in `place()`. The program is
 * in the PATH as `rollcall`.
 */
export function testPage(
  page: string,
  expected: Expected,
  place: () => CommandPlace,
  { isRunnable = () => true, before = {} }: PageOptions = {},
): void {
  const blocks = commandBlocks(readFileSync(join(workspaceRoot, page), "utf8"));

  it(`should know every command of ${page}`, () => {
    expect(blocks.map(({ name }) => name)).toEqual(expected.map(([name]) => name));
  });

  for (const [name, output] of expected) {
    (isRunnable(name) ? it : it.skip)(`should work, of ${page}: ${name}`, async () => {
      const { commands } = blocks.find((block) => block.name === name) ?? { commands: "false" };
      await before[name]?.();
      expect(await runCommands(commands, place())).toMatch(output);
    });
  }
}

/** Run commands of a page. Answers what they wrote; throws when one fails. */
async function runCommands(commands: string, { checkout, instead, env }: CommandPlace): Promise<string> {
  const here = replaceOnce(commands, instead);
  const { stdout, stderr } = await run("sh", ["-e", "-c", here], {
    cwd: checkout,
    timeout: COMMAND_LIMIT_MS,
    maxBuffer: MOST_OUTPUT,
    env: { ...process.env, HOME: checkout, PATH: `${join(checkout, "bin")}:${process.env.PATH}`, ...env },
  });
  return `${stdout}${stderr}`;
}

/** Replace words of a text in one pass: what stands in the place of one may have another in it, as ports do. */
function replaceOnce(text: string, instead: Readonly<Record<string, string>>): string {
  const words = Object.keys(instead).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return text;
  return text.replace(new RegExp(words.join("|"), "g"), (word) => instead[word] ?? word);
}
