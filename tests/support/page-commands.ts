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
const COMMAND_LIMIT_MS = 120_000;

/**
 * Test every block of a page that is opened with "```sh test=NAME", one after the other, in `place()`. The program is
 * in the PATH as `rollcall`. Blocks for which `isRunnable` says no are skipped.
 */
export function testPage(
  page: string,
  expected: Expected,
  place: () => CommandPlace,
  isRunnable: (name: string) => boolean = () => true,
): void {
  const blocks = commandBlocks(readFileSync(join(workspaceRoot, page), "utf8"));

  it(`should know every command of ${page}`, () => {
    expect(blocks.map(({ name }) => name)).toEqual(expected.map(([name]) => name));
  });

  for (const [name, output] of expected) {
    (isRunnable(name) ? it : it.skip)(`should work, of ${page}: ${name}`, async () => {
      const { commands } = blocks.find((block) => block.name === name) ?? { commands: "false" };
      expect(await runCommands(commands, place())).toMatch(output);
    });
  }
}

/** Run commands of a page. Answers what they wrote; throws when one fails. */
async function runCommands(commands: string, { checkout, instead, env }: CommandPlace): Promise<string> {
  const here = Object.entries(instead).reduce((text, [from, to]) => text.replaceAll(from, to), commands);
  const { stdout, stderr } = await run("sh", ["-e", "-c", here], {
    cwd: checkout,
    timeout: COMMAND_LIMIT_MS,
    env: { ...process.env, HOME: checkout, PATH: `${join(checkout, "bin")}:${process.env.PATH}`, ...env },
  });
  return `${stdout}${stderr}`;
}
