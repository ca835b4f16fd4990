// Reads and writes the version number. services/rollcall/package.json defines the version, and these places repeat it
// for other tools and readers.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const SEMVER = String.raw`\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?`;

/** The files that repeat the version, and a pattern for the text before the version in each. All matches are used. */
const PLACES: readonly (readonly [file: string, before: RegExp])[] = [
  ["services/rollcall/package.json", /^ {2}"version": "/],
  ["services/cli/package.json", /^ {2}"version": "/],
  ["sdk/typescript/package.json", /^ {2}"version": "/],
  ["sdk/typescript/package-lock.json", /"name": "@rollcall\/client",\n +"version": "/],
  ["sdk/python/pyproject.toml", /^version = "/],
  ["sdk/java/pom.xml", /^ {2}<version>/],
  ["sdk/java/README.md", /^ {2}<version>|rollcall-client:/],
  ["deploy/chart/Chart.yaml", /^(?:version|appVersion): /],
  ["docs/install.md", /rollcall(?:-agent)?[-_]/],
  ["docs/first-day.md", /rollcall-/],
];

/** A place that repeats the version. `line` counts from 1. */
export interface VersionPlace {
  readonly file: string;
  readonly line: number;
  readonly version: string;
}

/** Find every place of the version in the checkout `root`. */
export function versionPlaces(root: string): readonly VersionPlace[] {
  return PLACES.flatMap(([file, before]) => {
    const text = readFileSync(join(root, file), "utf8");
    return [...text.matchAll(placePattern(before))].map((match) => {
      const [, leading = "", version = ""] = match;
      return { file, line: text.slice(0, match.index + leading.length).split("\n").length, version };
    });
  });
}

/**
 * Write `version` to every place in the checkout `root`. Returns the changed files. Throws if `version` is not a
 * semantic version.
 */
export function setVersion(root: string, version: string): readonly string[] {
  if (!new RegExp(`^${SEMVER}$`).test(version)) throw new Error(`"${version}" is not a version such as 0.2.0`);
  for (const [file, before] of PLACES) {
    const path = join(root, file);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(placePattern(before), `$1${version}`));
  }
  return PLACES.map(([file]) => file);
}

function placePattern(before: RegExp): RegExp {
  return new RegExp(`(${before.source})(${SEMVER})`, "gm");
}
