// Writes archives that depend only on the names, contents and modes of their files.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { run } from "./run.mjs";

const REPRODUCIBLE = ["--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
/** The tar option for modes. Modes do not depend on the builder's umask, and only the executable bit is kept. */
const PUBLIC_MODES = "--mode=u=rwX,go=rX";
/**
 * The command that compresses. For Node's executable, the file is one percent larger at level 6 than at level 9,
 * but compressing takes a third of the time.
 */
const GZIP = "gzip -6n";

/**
 * Write entries of a folder to a .tar.gz file. All entries get the given time. Files keep their modes only with
 * `keepModes`.
 */
export async function writeTarGz(file, { folder, entries, timeS, keepModes = false }) {
  await runTar(["-I", GZIP, ...(keepModes ? [] : [PUBLIC_MODES])], { file, folder, entries, timeS });
}

/** Write entries of a folder to a .tar file, without compressing it. All entries get the given time. */
export async function writeTar(file, { folder, entries, timeS }) {
  await runTar([PUBLIC_MODES], { file, folder, entries, timeS });
}

async function runTar(options, { file, folder, entries, timeS }) {
  const words = [...REPRODUCIBLE, ...options, `--mtime=@${timeS}`, "-C", folder, "-cf", file, ...entries];
  await run("tar", words, { env: { LC_ALL: "C" } });
}

/** Write an ar archive, the format of .deb files. `members` holds its contents, keyed by name. */
export async function writeAr(file, members, timeS) {
  const parts = [Buffer.from("!<arch>\n")];
  for (const { name, content } of members) {
    const header = [
      name.padEnd(16),
      String(timeS).padEnd(12),
      "0".padEnd(6),
      "0".padEnd(6),
      "100644".padEnd(8),
      String(content.length).padEnd(10),
      "`\n",
    ].join("");
    parts.push(Buffer.from(header, "latin1"), content);
    if (content.length % 2 === 1) parts.push(Buffer.from("\n"));
  }
  await writeFile(file, Buffer.concat(parts));
}

/** Compute the digest of a file's contents, in hexadecimal. */
export async function digestOf(file, algorithm = "sha256") {
  const digest = createHash(algorithm);
  await pipeline(createReadStream(file), digest);
  return digest.digest("hex");
}

/** Compute the digest of a file in the format of npm's lock files: "sha512-...". */
export async function integrityOf(file) {
  return `sha512-${createHash("sha512")
    .update(await readFile(file))
    .digest("base64")}`;
}
