import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createGate, createTestDatabase, type TestDatabase, testFingerprint, until } from "@rollcall/testkit";
import { sql } from "kysely";
import { saveNextKey } from "../nodes/identities.ts";
import type { SessionHello } from "./open-round.ts";
import { openSessions } from "./sessions.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function hello(nodeId: string, keyFingerprint: string): SessionHello {
  const machine = { instanceId: "i", bootId: "b", machineFingerprint: "f", address: "a:1", replicaId: "r" };
  return { nodeId, keyFingerprint, ...machine };
}

async function isWaitingForLock(): Promise<boolean> {
  const { rows } = await sql`
    select from pg_locks as l join pg_stat_activity as a using (pid)
    where not l.granted and a.datname = current_database()`.execute(database.store.db);
  return rows.length > 0;
}

describe("openRound()", () => {
  it("should open nothing for a key that was replaced while waiting for its lock", async () => {
    const { store } = database;
    const [own, next] = [testFingerprint("rotating"), "SHA256:next"];
    await addNode(store, "rotating");
    await store.transaction((tx) =>
      saveNextKey(tx, { nodeId: "rotating", publicKey: new Uint8Array(32).fill(1), fingerprint: next }),
    );
    const [promoted, held] = [createGate(), createGate()];
    const first = store.change(async (tx) => {
      const change = await openSessions(tx, [hello("rotating", next)]);
      promoted.open();
      await held.passed;
      return change;
    });
    await promoted.passed;
    const second = store.change((tx) => openSessions(tx, [hello("rotating", own)]));
    await until("the second hello to wait for the first", isWaitingForLock);
    held.open();
    expect((await first).result).toMatchObject([{ outcome: "OPENED", epoch: 1 }]);
    expect((await second).result).toMatchObject([{ outcome: "KEY_RETIRED" }]);
  });
});
