// Archives that depend on nothing but the names, contents and modes of what goes into them.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { run } from "./run.mjs";

const REPRODUCIBLE = ["--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
/** Modes do not follow the umask of who builds; only whether a file can be run is kept. */
const PUBLIC_MODES = "--mode=u=rwX,go=rX";
/** Level 6 is a hundredth larger than 9 for Node's executable, and takes a third of the time. */
const GZIP = "gzip -6n";

/**
 * Write entries of a folder to a .tar.gz file. Every entry has the time given; files keep the modes that they have only
 * where `keepModes` says so.
 */
export async function writeTarGz(file, { folder, entries, timeS, keepModes = false }) {
  const modes = keepModes ? [] : [PUBLIC_MODES];
  const words = [...REPRODUCIBLE, ...modes, `--mtime=@${timeS}`, "-I", GZIP, "-C", folder, "-cf", file, ...entries];
  await run("tar", words, { env: { LC_ALL: "C" } });
}

/** Write an ar archive, as a .deb file is one, of named contents. */
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

/** The digest of a file's contents, in hexadecimal. */
export async function digestOf(file, algorithm = "sha256") {
  const digest = createHash(algorithm);
  await pipeline(createReadStream(file), digest);
  return digest.digest("hex");
}

/** The digest of a file as npm's lock files have it: "sha512-...". */
export async function integrityOf(file) {
  return `sha512-${createHash("sha512")
    .update(await readFile(file))
    .digest("base64")}`;
}
