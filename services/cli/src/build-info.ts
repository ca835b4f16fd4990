import { readFileSync } from "node:fs";

/** What a build says of itself, in the package.json beside it. Run from the sources, only the version is known. */
export interface BuildInfo {
  /** For example "0.1.0". */
  readonly version: string;
  /** The commit it was built from; "+changes" follows when files had changed since. */
  readonly commit?: string;
  /** When that was committed, as RFC 3339. */
  readonly commitTime?: string;
  /** What was built: "checkout", "npm", or a kind of package and its platform, "rollcall-agent-linux-x64". */
  readonly build?: string;
}

/** What this build says of itself. */
export function buildInfo(): BuildInfo {
  return parseBuildInfo(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
}

/** The version of this program, for example "0.1.0". */
export function cliVersion(): string {
  return buildInfo().version;
}

/** For people: "rollcall 0.1.0 (commit 0123456789ab of 2026-11-23, build checkout)"; `more` goes into the brackets. */
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

/** Parses the package.json of a build. */
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
