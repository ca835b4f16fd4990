import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseJoinToken } from "@rollcall/domain";
import { getJoinToken } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { localJoinToken } from "./local-join-token.ts";

let database: TestDatabase;
let stateDirectory: string;
beforeAll(async () => {
  database = await createTestDatabase();
  stateDirectory = await mkdtemp(join(tmpdir(), "rollcall-up-agent-"));
});
afterAll(async () => {
  await rm(stateDirectory, { recursive: true });
  await database.drop();
});

describe("localJoinToken()", () => {
  it("should make none unless requested", async () => {
    const { store } = database;
    expect(await localJoinToken({ store, enforcement: "none", stateDirectory })).toBeNull();
  });

  it("should make a single-use token for an agent that has not registered", async () => {
    const { store } = database;
    for (const enforcement of ["warn", "strict"] as const) {
      const text = await localJoinToken({ store, enforcement, stateDirectory });
      const parsed = parseJoinToken(text ?? "", store.clusterId());
      const token = parsed.kind === "own" ? await getJoinToken(store.db, parsed.id) : null;
      expect(token).toMatchObject({ maxUses: 1, preauthorized: false, createdBy: "system" });
    }
    await writeFile(join(stateDirectory, "sentinel.json"), "{}");
    expect(await localJoinToken({ store, enforcement: "strict", stateDirectory })).toBeNull();
  });
});
