/** The numbers of a version, and whether it is a prerelease. */
interface Version {
  readonly numbers: readonly number[];
  readonly isPrerelease: boolean;
}

/** Parse a version such as "0.2.0", "v1.4" or "0.2.0-rc.1"; null for anything else. */
export function parseVersion(text: string): Version | null {
  const match = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/.exec(text);
  if (match === null) return null;
  const [, major = "0", minor = "0", patch = "0", suffix] = match;
  return { numbers: [major, minor, patch].map(Number), isPrerelease: suffix !== undefined };
}

/**
 * Whether an agent's version is at least the required version. A prerelease is lower than its release. All
 * prereleases of the same release are equal. A version that cannot be parsed is never enough.
 */
export function isVersionAtLeast(version: string, least: string): boolean {
  const has = parseVersion(version);
  const needs = parseVersion(least);
  if (has === null || needs === null) return false;
  for (const [place, number] of has.numbers.entries()) {
    const other = needs.numbers[place] ?? 0;
    if (number !== other) return number > other;
  }
  return !has.isPrerelease || needs.isPrerelease;
}
