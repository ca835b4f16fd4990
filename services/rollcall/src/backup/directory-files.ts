import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ADMIN_TOKEN_FILE, Failure } from "@rollcall/cli";
import { errorCode, makeDirectory, replaceFile } from "@rollcall/process";
import type { ArchivedFile } from "@rollcall/store";

/**
 * The files of a data directory that belong to its store: the first access token, the authority that agents and
 * clients trust, and the local agent's identity.
 */
const FILES: readonly string[] = [
  ADMIN_TOKEN_FILE,
  "tls/ca.pem",
  "tls/ca-key.pem",
  "tls/next-ca-key.pem",
  "tls/server.pem",
  "tls/server-key.pem",
  "agent/node-key.pem",
  "agent/node-key.next.pem",
  "agent/sentinel.json",
];

/** Read the files of a data directory that go into an archive. */
export async function readDirectoryFiles(dataDirectory: string): Promise<readonly ArchivedFile[]> {
  const found = await Promise.all(FILES.map((path) => readIfThere(dataDirectory, path)));
  return found.filter((file) => file !== null);
}

/**
 * Refuse an archive with files that no backup contains, because such files could overwrite settings of Postgres.
 */
export function refuseStrangeFiles(files: readonly Pick<ArchivedFile, "path">[]): void {
  const strange = files.find(({ path }) => !FILES.includes(path));
  if (strange !== undefined) throw new Failure(`the archive contains an unexpected file: ${strange.path}`);
}

/** Write the files of an archive into a data directory, each atomically. Existing files are replaced. */
export async function writeDirectoryFiles(dataDirectory: string, files: readonly ArchivedFile[]): Promise<void> {
  refuseStrangeFiles(files);
  for (const { path, mode, content } of files) {
    const target = join(dataDirectory, path);
    await makeDirectory(dirname(target), 0o700);
    await replaceFile(target, Buffer.from(content, "base64"), mode);
  }
}

async function readIfThere(dataDirectory: string, path: string): Promise<ArchivedFile | null> {
  const file = join(dataDirectory, path);
  try {
    const [content, { mode }] = await Promise.all([readFile(file), stat(file)]);
    return { path, mode: mode & 0o700, content: content.toString("base64") };
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    return null;
  }
}
