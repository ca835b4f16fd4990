import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { isStoreUnavailable } from "@rollcall/errors";
import { systemClock } from "@rollcall/process";
import { createGate, createTestDatabase, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import type { Store } from "../database/store.ts";
import { ensureAccessToken } from "./access-tokens.ts";
import { accessTokenHash, createAuthenticator } from "./authenticator.ts";

let database: TestDatabase;
let store: Store;
beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});
afterAll(() => database.drop());

async function keep(id: string, role = "admin"): Promise<string> {
  const token = `token-${id}`;
  await ensureAccessToken(store.db, { id, name: id, role, hash: accessTokenHash(token) });
  return token;
}

async function revoke(id: string): Promise<void> {
  const revoked = { revoked_at: new Date() };
  await store.db.updateTable("access_tokens").set(revoked).where("id", "=", id).execute();
}

/** Create an authenticator with a manual clock. `state.questions` counts its queries to the store. */
function rig(cacheLimit = 1_000) {
  const state = { nowMs: 0, questions: 0, away: false };
  const counted: Pick<Store, "db"> = {
    get db() {
      state.questions += 1;
      if (state.away) throw new Error("the database is away");
      return store.db;
    },
  };
  const clock = { nowMs: () => state.nowMs, sleep: systemClock.sleep };
  return { state, authenticate: createAuthenticator({ store: counted, clock, cacheLimit }) };
}

describe("createAuthenticator()", () => {
  it("should find a token's caller, and none for any other text", async () => {
    const { authenticate } = rig();
    const token = await keep("known", "operator");
    expect(await authenticate(token)).toEqual({ kind: "token", id: "known", role: "operator" });
    expect(await authenticate("token-unknown")).toBeNull();
    expect(await authenticate("")).toBeNull();
  });

  it("should ignore an unknown role", async () => {
    expect(await rig().authenticate(await keep("newer", "emperor"))).toBeNull();
  });

  it("should query the store once a second for the same token", async () => {
    const { authenticate, state } = rig();
    const token = await keep("frequent");
    await Promise.all([authenticate(token), authenticate(token)]);
    state.nowMs = 999;
    await authenticate(token);
    expect(state.questions).toBe(1);
    state.nowMs = 1_000;
    await authenticate(token);
    expect(state.questions).toBe(2);
  });

  it("should look up many tokens in one query at a time, and answer each", async () => {
    const { authenticate, state } = rig();
    const tokens = await Promise.all(["one", "two", "three"].map((id) => keep(`many-${id}`)));
    const anonymousClients = Array.from({ length: 600 }, (_, index) => `token-anonymous-${index}`);
    const all = [...anonymousClients, ...tokens];
    const callers = await Promise.all(all.map((token) => authenticate(token)));
    expect(callers.slice(0, anonymousClients.length)).toEqual(anonymousClients.map(() => null));
    expect(callers.slice(anonymousClients.length)).toMatchObject(
      ["one", "two", "three"].map((id) => ({ id: `many-${id}` })),
    );
    expect(state.questions).toBe(2);
  });

  it("should notice within a second that a token was revoked", async () => {
    const { authenticate, state } = rig();
    const token = await keep("revoked");
    expect(await authenticate(token)).not.toBeNull();
    await revoke("revoked");
    state.nowMs = 1_000;
    expect(await refusalOf(authenticate(token))).toMatchObject({
      reason: "TOKEN_REVOKED",
      metadata: { token: "revoked" },
    });
    // The cache also holds responses about revoked tokens.
    const { questions } = state;
    await refusalOf(authenticate(token));
    expect(state.questions).toBe(questions);
  });

  it("should reveal only to its holder that a token expired", async () => {
    const { authenticate, state } = rig();
    const hash = accessTokenHash("brief");
    await ensureAccessToken(store.db, {
      id: "brief",
      name: "b",
      role: "viewer",
      hash,
      ttlMs: 60_000,
    });
    const caller = await authenticate("brief");
    expect(caller).toMatchObject({ id: "brief", expiresAtMs: expect.any(Number) });
    // Use a minute ago instead of now(): timestamps are read in milliseconds, so now() could be rounded up.
    await sql`update access_tokens set expires_at = now() - interval '1 minute' where id = 'brief'`.execute(store.db);
    state.nowMs = 1_000;
    expect(await refusalOf(authenticate("brief"))).toMatchObject({
      reason: "TOKEN_EXPIRED",
    });
    expect(await authenticate("brief ")).toBeNull();
  });

  it("should report each use of a valid token", async () => {
    const used: string[] = [];
    const clock = { nowMs: () => 0, sleep: systemClock.sleep };
    const onUse = (id: string) => used.push(id);
    const authenticate = createAuthenticator({ store, clock, onUse });
    const token = await keep("useful");
    await authenticate(token);
    await authenticate(token);
    await authenticate("token-unknown");
    expect(used).toEqual(["useful", "useful"]);
  });

  it("should limit the cached answers", async () => {
    const { authenticate, state } = rig(2);
    for (const token of ["a", "b", "c"]) await authenticate(token);
    expect(state.questions).toBe(3);
    await authenticate("c");
    await authenticate("b");
    expect(state.questions).toBe(3);
    await authenticate("a");
    expect(state.questions).toBe(4);
  });

  it("should fail, not deny, when the store does not answer in time, and not cache that", async () => {
    const token = await keep("stuck");
    const [locked, released] = [createGate(), createGate()];
    const locking = store.transaction(async (tx) => {
      await sql`lock table access_tokens in access exclusive mode`.execute(tx);
      locked.open();
      await released.passed;
    });
    await locked.passed;
    const clock = { nowMs: () => 0, sleep: systemClock.sleep };
    const authenticate = createAuthenticator({ store, clock, waitMs: 100 });
    const failure = await authenticate(token).catch((error: unknown) => error);
    expect(isStoreUnavailable(failure)).toBe(true);
    released.open();
    await locking;
    expect(await authenticate(token).catch(() => authenticate(token))).toMatchObject({ id: "stuck" });
  });

  it("should fail, not deny, while the store is unavailable, and not cache that", async () => {
    const { authenticate, state } = rig();
    const token = await keep("patient");
    state.away = true;
    await expect(authenticate(token)).rejects.toThrow("the database is away");
    state.away = false;
    expect(await authenticate(token)).not.toBeNull();
  });
});
