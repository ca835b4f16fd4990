import { chmod, link, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { generateKeyPair, keyFingerprint, keyPairFromPem, type NodeKeyPair, privateKeyToPem } from "@rollcall/identity";
import { createFile, type DurableFiles, makeDirectory, replaceFile, syncDirectory } from "@rollcall/process";
import { parseSentinel, type Sentinel } from "./sentinel.ts";

/** The calls to the file system with which an agent keeps its state. */
interface StateFiles extends DurableFiles {
  readonly chmod: (path: string, mode: number) => Promise<void>;
  readonly makeDirectory: typeof makeDirectory;
  readonly readFile: (path: string, encoding: "utf8") => Promise<string>;
  readonly stat: (path: string) => Promise<{ readonly mode: number; readonly mtimeMs: number }>;
}

const MACHINE_FILES: StateFiles = { chmod, link, makeDirectory, open, readFile, rename, rm, stat };

/** The directory that contains an agent's identity. */
export interface StateDirectory {
  readonly path: string;
  /** The node's key pair. The first call ever creates it. Rejects if the file does not contain an Ed25519 key. */
  keyPair(): Promise<NodeKeyPair>;
  /** When the node's key was created, by this machine's wall clock. Rejects before `keyPair()` has created one. */
  keyMadeAtMs(): Promise<number>;
  /**
   * The key that the node rotates to, or `undefined` if there is none. Rejects if its file does not contain an Ed25519
   * key.
   */
  nextKeyPair(): Promise<NodeKeyPair | undefined>;
  /** Store the key that the node rotates to. Once the promise resolves, the key is durably on disk. */
  writeNextKey(next: NodeKeyPair): Promise<void>;
  /**
   * Replace the node's key by the next key in one step, so that a crash leaves either both keys or only the next one.
   * Before that, a sentinel that names the old key is changed to name the next one, so that the sentinel always names a
   * key of this node. Can be repeated after an error.
   *
   * @param fingerprint that of the next key.
   */
  adoptNextKey(fingerprint: string): Promise<void>;
  /** The sentinel, or `undefined` if it does not exist or is invalid. */
  readSentinel(): Promise<Sentinel | undefined>;
  writeSentinel(sentinel: Sentinel): Promise<void>;
  removeSentinel(): Promise<void>;
}

const DIRECTORY_MODE = 0o700;
/** Only the owner has access to the files. */
const FILE_MODE = 0o600;
const KEY_FILE = "node-key.pem";
const NEXT_KEY_FILE = "node-key.next.pem";
const SENTINEL_FILE = "sentinel.json";

/**
 * Open the state directory, creating it if it is missing. Only the owner can access the directory and the key; wider
 * permissions are narrowed. Rejects if the directory cannot be used.
 */
export async function openStateDirectory(path: string, files = MACHINE_FILES): Promise<StateDirectory> {
  await files.makeDirectory(path, DIRECTORY_MODE);
  await narrow(path, DIRECTORY_MODE, files);
  const keyPath = join(path, KEY_FILE);
  const nextKeyPath = join(path, NEXT_KEY_FILE);
  const sentinelPath = join(path, SENTINEL_FILE);
  const readSentinel = async (): Promise<Sentinel | undefined> => {
    const text = await readIfThere(sentinelPath, files);
    return text === undefined ? undefined : parseSentinel(text);
  };
  const writeSentinel = (sentinel: Sentinel): Promise<void> =>
    replaceFile(sentinelPath, `${JSON.stringify(sentinel, null, 2)}\n`, FILE_MODE, files);
  return {
    path,
    keyPair: () => loadOrCreateKey(keyPath, files),
    keyMadeAtMs: async () => (await files.stat(keyPath)).mtimeMs,
    nextKeyPair: async () => {
      const pem = await readIfThere(nextKeyPath, files);
      if (pem === undefined) return undefined;
      await narrow(nextKeyPath, FILE_MODE, files);
      return toKeyPair(nextKeyPath, pem);
    },
    writeNextKey: (next) => replaceFile(nextKeyPath, privateKeyToPem(next.privateKey), FILE_MODE, files),
    adoptNextKey: async (fingerprint) => {
      const [current, next] = await Promise.all([keyPath, nextKeyPath].map((it) => readFingerprint(it, files)));
      const sentinel = await readSentinel();
      if (sentinel !== undefined && next !== undefined && sentinel.keyFingerprint === current) {
        await writeSentinel({ ...sentinel, keyFingerprint: next });
      }
      // Do not rename again after an attempt that failed only when it flushed the directory.
      if (next !== undefined || current !== fingerprint) await files.rename(nextKeyPath, keyPath);
      await syncDirectory(path, files);
    },
    readSentinel,
    writeSentinel,
    removeSentinel: async () => {
      await files.rm(sentinelPath, { force: true });
      await syncDirectory(dirname(sentinelPath), files);
    },
  };
}

async function readFingerprint(path: string, files: StateFiles): Promise<string | undefined> {
  const pem = await readIfThere(path, files);
  return pem === undefined ? undefined : keyFingerprint(toKeyPair(path, pem).publicKey);
}

async function loadOrCreateKey(path: string, files: StateFiles): Promise<NodeKeyPair> {
  const pem = await readIfThere(path, files);
  if (pem !== undefined) {
    await narrow(path, FILE_MODE, files);
    return toKeyPair(path, pem);
  }
  const created = generateKeyPair();
  try {
    await createFile(path, privateKeyToPem(created.privateKey), FILE_MODE, files);
    return created;
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    // Another agent was started on this directory at the same time. Use its key, which is on the disk.
    return toKeyPair(path, await files.readFile(path, "utf8"));
  }
}

function toKeyPair(path: string, pem: string): NodeKeyPair {
  try {
    return keyPairFromPem(pem);
  } catch (cause) {
    throw new Error(
      `${path} is not an Ed25519 private key; restore it, or remove it and have the node deleted so that it ` +
        "can register with a new key",
      { cause },
    );
  }
}

async function readIfThere(path: string, files: StateFiles): Promise<string | undefined> {
  try {
    return await files.readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function narrow(path: string, mode: number, files: StateFiles): Promise<void> {
  const { mode: current } = await files.stat(path);
  if ((current & 0o777 & ~mode) !== 0) await files.chmod(path, mode);
}

function hasCode(error: unknown, code: string): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === code;
}
