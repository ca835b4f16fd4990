import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { systemClock } from "@rollcall/process";
import { createAuthenticator, revokeAccessToken, type Store } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { ensureAdminToken } from "./ensure-admin-token.ts";

let database: TestDatabase;
let store: Store;
let directory: string;
beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  directory = await mkdtemp(join(tmpdir(), "rollcall-token-"));
});
afterAll(async () => {
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(async () => {
  await store.db.deleteFrom("access_tokens").execute();
});

function callerOf(token: string) {
  return createAuthenticator({ store, clock: systemClock })(token);
}

describe("ensureAdminToken()", () => {
  it("should create a token in a file that only its owner can read", async () => {
    const file = join(directory, "deep", "admin-token");
    const place = await ensureAdminToken({ store, file });
    expect(place).toMatchObject({ kind: "file", file, created: true });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const token = (await readFile(file, "utf8")).trim();
    expect(token).toMatch(/^rc_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/);
    const id = token.split("_")[1];
    expect(await callerOf(token)).toEqual({ kind: "token", id, role: "admin" });
    expect(await readdir(join(directory, "deep"))).toEqual(["admin-token"]);
  });

  it("should store only the token's hash", async () => {
    const file = join(directory, "hashed");
    await ensureAdminToken({ store, file });
    const secret = (await readFile(file, "utf8")).trim().split("_").slice(2).join("_");
    const rows = await store.db.selectFrom("access_tokens").selectAll().execute();
    expect(rows.map((row) => Object.values(row).join(" ")).join(" ")).not.toContain(secret);
  });

  it("should find the same token again", async () => {
    const file = join(directory, "again");
    const first = await ensureAdminToken({ store, file });
    const second = await ensureAdminToken({ store, file });
    expect(second).toEqual({ ...first, created: false });
  });

  it("should store a file's token again after the store was lost", async () => {
    const file = join(directory, "restored");
    await ensureAdminToken({ store, file });
    await store.db.deleteFrom("access_tokens").execute();
    expect(await ensureAdminToken({ store, file })).toMatchObject({ created: false });
    const token = (await readFile(file, "utf8")).trim();
    expect(await callerOf(token)).toMatchObject({ role: "admin" });
  });

  it("should create one token when many processes start at once", async () => {
    const file = join(directory, "many");
    const places = await Promise.all(Array.from({ length: 8 }, () => ensureAdminToken({ store, file })));
    const ids = new Set(places.map((place) => (place.kind === "kept" ? "" : place.id)));
    expect(ids.size).toBe(1);
    expect(await store.db.selectFrom("access_tokens").select("id").execute()).toHaveLength(1);
  });

  it("should prefer a given token, in any form, over the file", async () => {
    const file = join(directory, "unused");
    const value = "correct-horse-battery-staple";
    const place = await ensureAdminToken({ store, value, file });
    expect(place).toMatchObject({ kind: "value" });
    expect(await ensureAdminToken({ store, value })).toEqual(place);
    expect(await callerOf(value)).toMatchObject({ role: "admin" });
    await expect(stat(file)).rejects.toThrow("ENOENT");
  });

  it.each([
    ["empty", ""],
    ["too short", "too-short"],
    ["with blanks", "with a blank in it"],
    ["with a line break", "with\na line break"],
    ["too long", "x".repeat(4_097)],
  ])("should refuse a token that is %s", async (_, value) => {
    await expect(ensureAdminToken({ store, value })).rejects.toThrow("at least 16 characters");
    const file = join(directory, "bad");
    await writeFile(file, value);
    await expect(ensureAdminToken({ store, file })).rejects.toThrow(file);
  });

  it("should need nothing if the store has a token, otherwise say what to do", async () => {
    await expect(ensureAdminToken({ store })).rejects.toThrow("Admin.TokenFile");
    await ensureAdminToken({ store, value: "correct-horse-battery-staple" });
    expect(await ensureAdminToken({ store })).toEqual({ kind: "kept" });
  });

  it("should continue without a revoked token if another one exists, and otherwise say what to do", async () => {
    const file = join(directory, "rotated");
    const first = await ensureAdminToken({ store, file });
    const revoke = (id: string) => store.transaction((tx) => revokeAccessToken(tx, id, { actor: "x", reason: "" }));
    const id = first.kind === "file" ? first.id : "";
    const other = await ensureAdminToken({ store, value: "correct-horse-battery-staple" });
    await revoke(id);
    const place = await ensureAdminToken({ store, file });
    expect(place).toMatchObject({ kind: "ended", id });
    await revoke(other.kind === "value" ? other.id : "");
    await expect(ensureAdminToken({ store, file })).rejects.toThrow(/rotated was revoked, .*remove/);
    await rm(file);
    expect(await ensureAdminToken({ store, file })).toMatchObject({ created: true });
  });

  it("should never have a token in a message", async () => {
    const value = "secret with blanks";
    const failure = ensureAdminToken({ store, value });
    await expect(failure).rejects.not.toThrow(value);
  });
});
