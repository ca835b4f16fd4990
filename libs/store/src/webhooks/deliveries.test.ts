import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NewEvent } from "@rollcall/domain";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { takeLease } from "../leases/leases.ts";
import { openWebhook, saveDelivery, tellBehind, WEBHOOK_LEASE } from "./deliveries.ts";
import { getWebhook, insertWebhook } from "./webhooks.ts";

const SPEC = { url: "https://hook/", types: [], excludeTypes: [], labelSelector: "", description: "", paused: true };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function insert(name: string): Promise<void> {
  const webhook = { name, spec: SPEC, secret: new Uint8Array(), revision: 0n, actor: "x" };
  await database.store.transaction((tx) => insertWebhook(tx, webhook));
}

describe("saveDelivery()", () => {
  it("should change nothing for a delivery that was opened again", async () => {
    const { store } = database;
    await insert("fenced");
    await takeLease(store.db, { name: WEBHOOK_LEASE, instance: "i1", service: "admin", address: "" });
    const wish = { name: "fenced", instance: "i1" };
    const [first, second] = [await openWebhook(store.reserved, wish), await openWebhook(store.reserved, wish)];
    const save = async (generation: bigint | undefined, revision: bigint) =>
      saveDelivery(store.reserved, {
        ...{ name: "fenced", generation: generation ?? 0n, logId: await store.refreshLogId(), revision },
        ...{ blocked: [], released: [], succeeded: true, failure: null, lost: null },
      });
    expect(await save(second?.generation, 5n)).toBe(true);
    expect(await save(first?.generation, 9n)).toBe(false);
    expect((await getWebhook(store.db, "fenced"))?.revision).toBe(5n);
  });
});

describe("openWebhook()", () => {
  it("should open nothing for a process without the lease, and leave the delivery of the holder valid", async () => {
    const { store } = database;
    await insert("held");
    const claim = { name: WEBHOOK_LEASE, service: "admin", address: "" };
    await takeLease(store.db, { ...claim, instance: "i1" });
    const opened = await openWebhook(store.reserved, { name: "held", instance: "i1" });
    expect(await takeLease(store.db, { ...claim, instance: "i2" })).toBeNull();
    expect(await openWebhook(store.reserved, { name: "held", instance: "i2" })).toBeNull();
    const saved = await saveDelivery(store.reserved, {
      ...{ name: "held", generation: opened?.generation ?? 0n, logId: await store.refreshLogId(), revision: 3n },
      ...{ blocked: [], released: [], succeeded: true, failure: null, lost: null },
    });
    expect(saved).toBe(true);
  });
});

describe("tellBehind()", () => {
  it("should append one event for a webhook that stays behind", async () => {
    const { store } = database;
    await insert("behind");
    const subject = { type: "node.registered", subject: "behind" } as const;
    const event: NewEvent = { ...subject, actor: "system", reason: "TESTED", message: "", before: null, after: null };
    for (let repeat = 0; repeat < 3; repeat += 1) await tellBehind(store.reserved, "behind", event);
    const rows = await store.db.selectFrom("events").select("revision").where("subject", "=", "behind").execute();
    expect(rows).toHaveLength(1);
  });
});
