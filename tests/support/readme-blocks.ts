/** A block of shell commands on a page, which a test runs. */
export interface CommandBlock {
  /** The name after `test=` on the line that opens the block. */
  readonly name: string;
  readonly commands: string;
}

/** Finds the blocks that start with "```sh test=NAME", in their order on the page. */
export function commandBlocks(markdown: string): readonly CommandBlock[] {
  return [...markdown.matchAll(/^```sh test=(\S+)\n([\s\S]*?)^```$/gm)].map(([, name = "", commands = ""]) => ({
    name,
    commands,
  }));
}
