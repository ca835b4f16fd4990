import { readFileSync } from "node:fs";
import { join } from "node:path";
import { commandBlocks } from "../../support/readme-blocks.ts";
import { workspaceRoot } from "../../support/workspace.ts";

/** The commands of docs/install.md that tests of packages run, keyed by name. */
export const INSTALL_COMMANDS = commandBlocks(readFileSync(join(workspaceRoot, "docs/install.md"), "utf8"));

/** Return the commands of a block, for this version and this kind of machine. */
export function installCommands(name: string, version: string): string {
  const found = INSTALL_COMMANDS.find((block) => block.name === name);
  if (found === undefined) throw new Error(`docs/install.md has no block ${name}`);
  const here = found.commands.replaceAll("0.1.0", version);
  return process.arch === "arm64" ? here.replaceAll("linux-x64", "linux-arm64").replaceAll("_amd64", "_arm64") : here;
}
