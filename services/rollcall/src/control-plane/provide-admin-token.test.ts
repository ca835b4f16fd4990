import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { accessTokenHash, findAccessToken } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { provideAdminToken } from "./provide-admin-token.ts";

let database: TestDatabase;
let directory: string;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "rollcall-admin-"));
});
afterAll(async () => {
  await database.drop();
  rmSync(directory, { recursive: true });
});

function provide(name: string, { always = false, token = undefined as string | undefined } = {}) {
  const config = { "Admin.Token": token, "Admin.TokenFile": undefined };
  const file = join(directory, name);
  return provideAdminToken({ store: database.store, config, file, always, log: silentLogger });
}

// One story: each test continues with the state of the previous one.
describe("provideAdminToken()", () => {
  it("should create the first token", async () => {
    const file = join(directory, "first");
    expect(await provide("first")).toBe(file);
    const token = readFileSync(file, "utf8").trim();
    expect(await findAccessToken(database.store.db, accessTokenHash(token))).toMatchObject({
      role: "admin",
    });
  });

  it("should create no other if the store has one, unless it must", async () => {
    expect(await provide("second")).toBeNull();
    expect(existsSync(join(directory, "second"))).toBe(false);
    expect(await provide("second", { always: true })).toBe(join(directory, "second"));
  });

  it("should use the configured one", async () => {
    const token = "configured-by-an-operator";
    expect(await provide("third", { always: true, token })).toBeNull();
    expect(await findAccessToken(database.store.db, accessTokenHash(token))).toMatchObject({
      role: "admin",
    });
  });
});
