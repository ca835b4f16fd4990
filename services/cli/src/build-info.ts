import { readFileSync } from "node:fs";

/** Build information from the bundled package.json. When run from source, only the version is set. */
export interface BuildInfo {
  /** The version, for example "0.1.0". */
  readonly version: string;
  /** The commit of the build, with "+changes" appended if the working tree had changes. */
  readonly commit?: string;
  /** The time of the commit, as RFC 3339. */
  readonly commitTime?: string;
  /**
   * The kind of build: "checkout", "npm", or a kind of package with its platform, such as "rollcall-agent-linux-x64".
   */
  readonly build?: string;
}

export function buildInfo(): BuildInfo {
  return parseBuildInfo(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
}

/** The version of this program, for example "0.1.0". */
export function cliVersion(): string {
  return buildInfo().version;
}

/**
 * Format the version for people: "rollcall 0.1.0 (commit 0123456789ab of 2026-11-23, build checkout)". `more` is added
 * inside the parentheses.
 */
export function versionText(info: BuildInfo, more: readonly string[] = []): string {
  const { version, commit, commitTime, build } = info;
  const day = commitTime === undefined ? "" : ` of ${commitTime.slice(0, 10)}`;
  const details = [
    ...(commit === undefined ? [] : [`commit ${shortCommit(commit)}${day}`]),
    ...(build === undefined ? [] : [`build ${build}`]),
    ...more,
  ];
  return `rollcall ${version}${details.length === 0 ? "" : ` (${details.join(", ")})`}`;
}

/** Parse the package.json of a build. */
export function parseBuildInfo(text: string): BuildInfo {
  const value: unknown = JSON.parse(text);
  const fields = typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  const textOf = (name: string) => (typeof fields[name] === "string" ? { [name]: fields[name] } : {});
  return { version: "0.0.0", ...textOf("version"), ...textOf("commit"), ...textOf("commitTime"), ...textOf("build") };
}

const SHORT = 12;

function shortCommit(commit: string): string {
  return commit.replace(/^[0-9a-f]+/, (hash) => hash.slice(0, SHORT));
}
