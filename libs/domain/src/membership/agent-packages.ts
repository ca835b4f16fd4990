/** A package of the agent that machines can install when they join. */
export interface AgentPackage {
  /** The file's name. It contains no path. */
  readonly name: string;
  /** SHA-256 of the file, 64 hexadecimal digits. */
  readonly sha256: string;
  readonly platform: PackagePlatform;
  readonly format: "deb" | "tar.gz";
}

/** The platforms that packages are made for. */
export const PACKAGE_PLATFORMS = ["linux-x64", "linux-arm64"] as const;
export type PackagePlatform = (typeof PACKAGE_PLATFORMS)[number];

const LINE = /^([0-9a-f]{64}) [ *](\S+)$/;
const VERSION = "([0-9][0-9A-Za-z.+~-]*)";
const DEB = new RegExp(`^rollcall-agent_${VERSION}_(amd64|arm64)\\.deb$`);
const TARBALL = new RegExp(`^rollcall-agent-${VERSION}-(linux-x64|linux-arm64)\\.tar\\.gz$`);
const DEBIAN = { amd64: "linux-x64", arm64: "linux-arm64" } as const;

/**
 * Find the agent's packages in the text of a SHA256SUMS file. Other files are left out. Of several versions, only the
 * highest one of each platform and format is used.
 */
export function parseAgentPackages(sums: string): readonly AgentPackage[] {
  const newest = new Map<string, { readonly version: string; readonly found: AgentPackage }>();
  for (const line of sums.split("\n")) {
    const [, sha256, name] = LINE.exec(line.trimEnd()) ?? [];
    if (sha256 === undefined || name === undefined) continue;
    const named = parseName(name);
    if (named === null) continue;
    const { version, ...kind } = named;
    const key = `${kind.platform} ${kind.format}`;
    const known = newest.get(key);
    if (known !== undefined && compareVersions(known.version, version) >= 0) continue;
    newest.set(key, { version, found: { name, sha256, ...kind } });
  }
  return [...newest.values()].map(({ found }) => found);
}

/** Whether packages exist for a platform. */
export function isPackageFor(text: string): text is PackagePlatform {
  return PACKAGE_PLATFORMS.some((it) => it === text);
}

function parseName(name: string): (Pick<AgentPackage, "platform" | "format"> & { readonly version: string }) | null {
  const [, debVersion, architecture] = DEB.exec(name) ?? [];
  if (debVersion !== undefined && (architecture === "amd64" || architecture === "arm64")) {
    return { version: debVersion, platform: DEBIAN[architecture], format: "deb" };
  }
  const [, version, platform = ""] = TARBALL.exec(name) ?? [];
  return version !== undefined && isPackageFor(platform) ? { version, platform, format: "tar.gz" } : null;
}

/** Compare versions part by part; numbers by their value. */
function compareVersions(left: string, right: string): number {
  const [mine, others] = [left, right].map((it) => it.split(/[.+~-]/));
  for (let at = 0; at < Math.max(mine?.length ?? 0, others?.length ?? 0); at += 1) {
    const [one = "", other = ""] = [mine?.[at], others?.[at]];
    if (one === other) continue;
    const difference = Number(one) - Number(other);
    if (!Number.isNaN(difference) && difference !== 0) return difference;
    return one < other ? -1 : 1;
  }
  return 0;
}
