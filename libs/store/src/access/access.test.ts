import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, saveKey, type TestDatabase } from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { keyOf, ownersOfKeys, pruneChallenges, useChallenge } from "../nodes/identities.ts";
import { ensureAccessToken, findAccessToken, hasAccessToken } from "./access-tokens.ts";
import { firstAnswer, pruneRequestIds, saveAnswer } from "./request-ids.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

function hashOf(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

describe("ensureAccessToken()", () => {
  it("should store a token once when several processes do it", async () => {
    expect(await hasAccessToken(store.db, "admin")).toBe(false);
    const kept = await Promise.all(
      Array.from({ length: 6 }, (_, number) =>
        ensureAccessToken(store.db, {
          id: `id${number}`,
          name: "first",
          role: "admin",
          hash: hashOf("s"),
        }),
      ),
    );
    expect(new Set(kept.map(({ id }) => id)).size).toBe(1);
    expect(await findAccessToken(store.db, hashOf("s"))).toEqual(kept[0]);
    expect(await hasAccessToken(store.db, "admin")).toBe(true);
    expect(await findAccessToken(store.db, hashOf("other"))).toBeNull();
  });

  it("should never restore a revoked token", async () => {
    const token = { id: "r", name: "revoked", role: "viewer", hash: hashOf("r") };
    await ensureAccessToken(store.db, token);
    await store.db.updateTable("access_tokens").set({ revoked_at: new Date() }).where("id", "=", "r").execute();
    expect((await findAccessToken(store.db, hashOf("r")))?.revocation).not.toBeNull();
    expect(await hasAccessToken(store.db, "viewer")).toBe(false);
    expect((await ensureAccessToken(store.db, token)).revocation).not.toBeNull();
  });
});

describe("useChallenge()", () => {
  it("should let only one of many callers use a nonce", async () => {
    const nonce = hashOf("nonce");
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => store.transaction((tx) => useChallenge(tx, nonce))),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
  });

  it("should leave a nonce unused when the transaction is rolled back", async () => {
    const nonce = hashOf("rolled back");
    const failed = store.transaction(async (tx) => {
      await useChallenge(tx, nonce);
      throw new Error("no");
    });
    await expect(failed).rejects.toThrow("no");
    expect(await store.transaction((tx) => useChallenge(tx, nonce))).toBe(true);
  });

  it("should delete rows older than a given age", async () => {
    expect(await pruneChallenges(store.db, 60_000)).toBe(0);
    expect(await pruneChallenges(store.db, -60_000)).toBe(2);
  });
});

describe("firstAnswer()", () => {
  const key = { requestId: "r1", method: "/a/B", caller: "token:t", digest: hashOf("asked") };
  const answer = new Uint8Array([1, 2, 0, 255]);

  it("should claim a request and then return its first answer", async () => {
    await store.transaction(async (tx) => {
      expect(await firstAnswer(tx, key)).toBeNull();
      await saveAnswer(tx, key, answer);
    });
    const again = await store.transaction((tx) => firstAnswer(tx, key));
    expect(new Uint8Array(again ?? [])).toEqual(answer);
  });

  it("should distinguish callers and methods", async () => {
    for (const other of [
      { ...key, caller: "token:u" },
      { ...key, method: "/a/C" },
    ]) {
      expect(await store.transaction((tx) => firstAnswer(tx, other))).toBeNull();
    }
  });

  it("should let one of many concurrent callers proceed, and give the others its answer", async () => {
    const raced = { ...key, requestId: "raced" };
    let effects = 0;
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        store.transaction(async (tx) => {
          const first = await firstAnswer(tx, raced);
          if (first !== null) return first;
          effects += 1;
          await saveAnswer(tx, raced, answer);
          return answer;
        }),
      ),
    );
    expect(effects).toBe(1);
    for (const each of answers) expect(new Uint8Array(each)).toEqual(answer);
  });

  it("should free the claim of a refused request", async () => {
    const refused = { ...key, requestId: "refused" };
    const failed = store.transaction(async (tx) => {
      await firstAnswer(tx, refused);
      throw new Error("refused");
    });
    await expect(failed).rejects.toThrow("refused");
    expect(await store.transaction((tx) => firstAnswer(tx, refused))).toBeNull();
  });

  it("should delete rows older than a given age", async () => {
    expect(await pruneRequestIds(store.db, 60_000)).toBe(0);
    expect(await pruneRequestIds(store.db, -60_000)).toBeGreaterThan(0);
    expect(await store.transaction((tx) => firstAnswer(tx, key))).toBeNull();
  });
});

describe("keyOf()", () => {
  it("should find nodes by their keys, and keys by their nodes", async () => {
    const publicKey = new Uint8Array(32).fill(7);
    await addNode(store, "owner", { hasKey: false });
    await store.transaction((tx) => saveKey(tx, { nodeId: "owner", publicKey, fingerprint: "SHA256:x" }));
    const owners = await ownersOfKeys(store.db, ["SHA256:x", "SHA256:y"]);
    expect(owners).toEqual(new Map([["SHA256:x", "owner"]]));
    const keys = await keyOf(store.db, ["owner", "nobody"]);
    expect([...keys.keys()]).toEqual(["owner"]);
    expect(new Uint8Array(keys.get("owner")?.publicKey ?? [])).toEqual(publicKey);
    expect(await keyOf(store.db, [])).toEqual(new Map());
  });
});
