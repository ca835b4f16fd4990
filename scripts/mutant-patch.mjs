/**
 * Read the header of a patch in mutants/.
 *
 * @param {string} text the text of the patch.
 * @returns {{ breaks: string, tests: readonly string[], survives?: string, hangs?: string, folders: readonly string[] }}
 *   `breaks`: the broken promise; `tests`: the test files that should detect the bug, none for a patch that the explorer
 *   or the simulation should detect; `survives` and `hangs`: the reasons, if the patch expects its mutant to survive or
 *   to hang; `folders`: the packages that it changes, such as "libs/rpc".
 */
export function readPatch(text) {
  const header = text.split("\ndiff --git ", 1)[0] ?? "";
  /** @param {string} name */
  const textAfter = (name) => header.match(new RegExp(`^${name}: (.+)$`, "m"))?.[1];
  const [survives, hangs] = [textAfter("Survives"), textAfter("Hangs")];
  const changed = [...text.matchAll(/^\+\+\+ b\/([^/]+\/[^/]+)\//gm)].map(([, folder = ""]) => folder);
  return {
    breaks: textAfter("Breaks") ?? "",
    tests: textAfter("Tests")?.split(" ") ?? [],
    ...(survives !== undefined && { survives }),
    ...(hangs !== undefined && { hangs }),
    folders: [...new Set(changed)],
  };
}

/**
 * Select the items of one shard. Every item is in exactly one shard.
 *
 * @template T
 * @param {readonly T[]} items
 * @param {string} shard such as "2/4", the second of four; empty for all items.
 * @returns {readonly T[]}
 */
export function takeShard(items, shard) {
  if (shard === "") return items;
  const [, number, count] = (/^(\d{1,3})\/(\d{1,3})$/.exec(shard) ?? []).map(Number);
  if (!number || !count || number > count) throw new Error(`SHARD=${shard} is not a shard such as 2/4`);
  return items.filter((_, index) => index % count === number - 1);
}
