import { chmod, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { generateKeyPair, keyFingerprint, keyPairFromPem, type NodeKeyPair, privateKeyToPem } from "@rollcall/identity";
import { makeDirectory } from "@rollcall/process";
import { parseSentinel, type Sentinel } from "./sentinel.ts";
import { createFile, FILE_MODE, replaceFile, syncDirectory } from "./write-atomically.ts";

/** The directory in which an agent keeps who it is. */
export interface StateDirectory {
  readonly path: string;
  /** The node's key pair; made at the first call ever. Rejects when the file holds no Ed25519 key. */
  keyPair(): Promise<NodeKeyPair>;
  /** When the node's key was made, by this machine's wall clock. Rejects before `keyPair()` has made one. */
  keyMadeAtMs(): Promise<number>;
  /**
   * The key that the node rotates to, or `undefined` when there is none. Rejects when its file holds no Ed25519 key.
   */
  nextKeyPair(): Promise<NodeKeyPair | undefined>;
  /** Keep the key that the node rotates to. It is on the disk for certain once this resolves. */
  writeNextKey(next: NodeKeyPair): Promise<void>;
  /**
   * Put the next key in the place of the node's key, in one step: a crash leaves both or the next one alone. A sentinel
   * that names the node's key names the next one before that, so that it names a key of this node at any moment.
   */
  adoptNextKey(): Promise<void>;
  /** The sentinel, or `undefined` when there is none or it cannot be read as one. */
  readSentinel(): Promise<Sentinel | undefined>;
  writeSentinel(sentinel: Sentinel): Promise<void>;
  removeSentinel(): Promise<void>;
}

const DIRECTORY_MODE = 0o700;
const KEY_FILE = "node-key.pem";
const NEXT_KEY_FILE = "node-key.next.pem";
const SENTINEL_FILE = "sentinel.json";

/**
 * Open the state directory, creating it when it is missing. Directory and key are closed to all users but their owner;
 * permissions that are wider are narrowed. Rejects when the directory cannot be used.
 */
export async function openStateDirectory(path: string): Promise<StateDirectory> {
  await makeDirectory(path, DIRECTORY_MODE);
  await narrow(path, DIRECTORY_MODE);
  const keyPath = join(path, KEY_FILE);
  const nextKeyPath = join(path, NEXT_KEY_FILE);
  const sentinelPath = join(path, SENTINEL_FILE);
  const readSentinel = async (): Promise<Sentinel | undefined> => {
    const text = await readIfThere(sentinelPath);
    return text === undefined ? undefined : parseSentinel(text);
  };
  const writeSentinel = (sentinel: Sentinel): Promise<void> =>
    replaceFile(sentinelPath, `${JSON.stringify(sentinel, null, 2)}\n`);
  return {
    path,
    keyPair: () => loadOrCreateKey(keyPath),
    keyMadeAtMs: async () => (await stat(keyPath)).mtimeMs,
    nextKeyPair: async () => {
      const pem = await readIfThere(nextKeyPath);
      if (pem === undefined) return undefined;
      await narrow(nextKeyPath, FILE_MODE);
      return toKeyPair(nextKeyPath, pem);
    },
    writeNextKey: (next) => replaceFile(nextKeyPath, privateKeyToPem(next.privateKey)),
    adoptNextKey: async () => {
      const [current, next] = await Promise.all([keyPath, nextKeyPath].map(readFingerprint));
      const sentinel = await readSentinel();
      if (sentinel !== undefined && next !== undefined && sentinel.keyFingerprint === current) {
        await writeSentinel({ ...sentinel, keyFingerprint: next });
      }
      await rename(nextKeyPath, keyPath);
      await syncDirectory(path);
    },
    readSentinel,
    writeSentinel,
    removeSentinel: async () => {
      await rm(sentinelPath, { force: true });
      await syncDirectory(dirname(sentinelPath));
    },
  };
}

async function readFingerprint(path: string): Promise<string | undefined> {
  const pem = await readIfThere(path);
  return pem === undefined ? undefined : keyFingerprint(toKeyPair(path, pem).publicKey);
}

async function loadOrCreateKey(path: string): Promise<NodeKeyPair> {
  const pem = await readIfThere(path);
  if (pem !== undefined) {
    await narrow(path, FILE_MODE);
    return toKeyPair(path, pem);
  }
  const created = generateKeyPair();
  try {
    await createFile(path, privateKeyToPem(created.privateKey));
    return created;
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    // Another agent was started on this directory at the same time. There is one key, and it is the one on the disk.
    return toKeyPair(path, await readFile(path, "utf8"));
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

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function narrow(path: string, mode: number): Promise<void> {
  const { mode: current } = await stat(path);
  if ((current & 0o777 & ~mode) !== 0) await chmod(path, mode);
}

function hasCode(error: unknown, code: string): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === code;
}
