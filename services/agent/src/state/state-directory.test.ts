import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import { openStateDirectory } from "./state-directory.ts";

const SENTINEL = {
  nodeId: "node-1",
  keyFingerprint: "SHA256:abc",
  clusterId: "cluster-1",
  healthEndpoints: ["10.0.0.1:7701"],
};

let parent: string;
let path: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "rollcall-state-"));
  path = join(parent, "deep", "state");
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const modeOf = async (file: string) => (await stat(file)).mode & 0o777;

describe("openStateDirectory()", () => {
  it("should create directory and key only for their owner", async () => {
    const state = await openStateDirectory(path);
    await state.keyPair();
    await state.writeSentinel(SENTINEL);
    expect(await modeOf(path)).toBe(0o700);
    expect(await modeOf(join(path, "node-key.pem"))).toBe(0o600);
    expect(await modeOf(join(path, "sentinel.json"))).toBe(0o600);
  });

  it("should narrow permissions that are too wide", async () => {
    const state = await openStateDirectory(path);
    const { publicKey } = await state.keyPair();
    await chmod(path, 0o755);
    await chmod(join(path, "node-key.pem"), 0o644);
    const again = await (await openStateDirectory(path)).keyPair();
    expect(again.publicKey).toEqual(publicKey);
    expect(await modeOf(path)).toBe(0o700);
    expect(await modeOf(join(path, "node-key.pem"))).toBe(0o600);
  });

  it("should give two agents that start simultaneously the same key", async () => {
    const states = await Promise.all([1, 2, 3, 4].map(() => openStateDirectory(path)));
    const keys = await Promise.all(states.map((state) => state.keyPair()));
    const fingerprints = keys.map((key) => keyFingerprint(key.publicKey));
    expect(new Set(fingerprints).size).toBe(1);
    const pem = await readFile(join(path, "node-key.pem"), "utf8");
    expect(pem).toContain("BEGIN PRIVATE KEY");
  });

  it("should name the next key in the sentinel when it replaces the node's key", async () => {
    const state = await openStateDirectory(path);
    const [current, next] = [await state.keyPair(), generateKeyPair()];
    await state.writeNextKey(next);
    await state.writeSentinel({ ...SENTINEL, keyFingerprint: keyFingerprint(current.publicKey) });
    await state.adoptNextKey(keyFingerprint(next.publicKey));
    expect((await state.keyPair()).publicKey).toEqual(next.publicKey);
    expect(await state.readSentinel()).toEqual({ ...SENTINEL, keyFingerprint: keyFingerprint(next.publicKey) });
  });

  it("should leave the sentinel of another key as it is", async () => {
    const state = await openStateDirectory(path);
    await state.keyPair();
    const next = generateKeyPair();
    await state.writeNextKey(next);
    await state.writeSentinel(SENTINEL);
    await state.adoptNextKey(keyFingerprint(next.publicKey));
    expect(await state.readSentinel()).toEqual(SENTINEL);
  });

  it("should not replace a key that it cannot read", async () => {
    const state = await openStateDirectory(path);
    await writeFile(join(path, "node-key.pem"), "garbage");
    await expect(state.keyPair()).rejects.toThrow("is not an Ed25519 private key");
    expect(await readFile(join(path, "node-key.pem"), "utf8")).toBe("garbage");
  });

  it("should write, replace and remove the sentinel, leaving nothing else behind", async () => {
    const state = await openStateDirectory(path);
    expect(await state.readSentinel()).toBeUndefined();
    await state.writeSentinel({ ...SENTINEL, clusterId: "before" });
    await state.writeSentinel(SENTINEL);
    expect(await state.readSentinel()).toEqual(SENTINEL);
    expect(await readdir(path)).toEqual(["sentinel.json"]);
    await state.removeSentinel();
    await state.removeSentinel();
    expect(await state.readSentinel()).toBeUndefined();
  });
});
