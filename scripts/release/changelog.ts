// Writes the date of a release into the changelog.

const UNRELEASED = / \(unreleased\)$/;

/**
 * Date the unreleased version of a changelog. Returns the new text. `date` is YYYY-MM-DD. Throws if the newest
 * version is a different one, was already released, or has no entry.
 */
export function cutChangelog(text: string, { version, date }: { version: string; date: string }): string {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => line.startsWith("## "));
  const heading = lines[at] ?? "";
  if (!UNRELEASED.test(heading)) throw new Error(`CHANGELOG.md has no unreleased version: "${heading}"`);
  const named = heading.slice("## ".length).replace(UNRELEASED, "");
  if (named !== version) throw new Error(`the unreleased version in CHANGELOG.md is ${named}, not ${version}`);
  if (entriesOf(lines, at) === 0) throw new Error(`CHANGELOG.md has no entry for ${version}`);
  lines[at] = `## ${version} - ${date}`;
  return lines.join("\n");
}

function entriesOf(lines: readonly string[], headingAt: number): number {
  const end = lines.findIndex((line, at) => at > headingAt && line.startsWith("## "));
  return lines.slice(headingAt, end === -1 ? undefined : end).filter((line) => line.startsWith("- ")).length;
}
