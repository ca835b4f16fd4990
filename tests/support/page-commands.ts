import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "@jest/globals";
import { needs } from "../../libs/testkit/src/jest/needs.ts";
import { type CommandBlock, commandBlocks } from "./readme-blocks.ts";
import { workspaceRoot } from "./workspace.ts";

/**
 * The expected output of each block of a page, in the order of the page. Each block depends on the blocks before it.
 */
export type Expected = readonly (readonly [name: string, output: RegExp])[];

/** Where a page's commands run. */
export interface CommandPlace {
  /** A folder that works like a checkout; see layOutCheckout(). */
  readonly checkout: string;
  /** Strings of the page, such as addresses, and their replacements. */
  readonly instead: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const COMMAND_LIMIT_MS = 180_000;
const MOST_OUTPUT = 16 * 1024 * 1024;

/** What a page needs in addition to its own commands. */
export interface PageOptions {
  /** Returns whether to run a block. All other blocks are skipped. */
  readonly isRunnable?: (name: string) => boolean;
  /** Steps to run before a block, keyed by the block's name. The reader has done them, but no block contains them. */
  readonly before?: Readonly<Record<string, () => Promise<unknown>>>;
}

/**
 * Run every block of a page that starts with "```sh test=NAME", one after the other, in `place()`. The program is on
 * the PATH as `rollcall`.
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
    needs(name, isRunnable(name)).it(`should work, of ${page}: ${name}`, async () => {
      const at = blocks.findIndex((block) => block.name === name);
      await before[name]?.();
      expect(await runCommands(commandsFrom(blocks.slice(0, at + 1)), place())).toMatch(output);
    });
  }
}

/**
 * Return the commands of the last block, after the exports of the earlier blocks, because readers use one shell for
 * the whole page.
 */
function commandsFrom(blocks: readonly CommandBlock[]): string {
  const { commands = "false" } = blocks.at(-1) ?? {};
  const earlier = blocks.slice(0, -1).flatMap((block) => block.commands.match(/^export .*$/gm) ?? []);
  return [...earlier, commands].join("\n");
}

/** Run commands of a page. Returns their output; rejects if one of them fails. */
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

/** Replace words of a text in one pass, because a replacement can contain another of the words, such as a port. */
function replaceOnce(text: string, instead: Readonly<Record<string, string>>): string {
  const words = Object.keys(instead).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return text;
  return text.replace(new RegExp(words.join("|"), "g"), (word) => instead[word] ?? word);
}
