import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { compactEvents, openRelay, RELAY_LEASE, readRelay, saveRelay, takeLease } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { makeHistory } from "../testing/record.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
let token: string;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  token = await createToken(rig.store, "operator");
  await makeHistory(rig.store, 100);
});
afterAll(() => rig.close());

/** Mark everything as relayed in the store. */
async function relayAll(): Promise<bigint> {
  const { db } = rig.store;
  const logId = rig.store.logId();
  const lease = { name: RELAY_LEASE, instance: "i1", service: "registry", address: "" };
  await takeLease(db, lease);
  const { head } = await readRelay(db);
  const opened = await openRelay(db, lease);
  await saveRelay(rig.store, { revision: head, generation: opened?.generation ?? 0, logId });
  return head;
}

const republish = (fromRevision: bigint, requestId = "") =>
  rig.client(EventService, token).republishEvents({ fromRevision, requestId });

describe("RepublishEvents", () => {
  it("should set the cursor back, and fence the registry that relays", async () => {
    const head = await relayAll();
    const before = await readRelay(rig.store.db);
    expect(await republish(head - 9n)).toMatchObject({
      fromRevision: head - 9n,
      throughRevision: head,
    });
    const { revision, generation } = await readRelay(rig.store.db);
    expect(revision).toBe(head - 10n);
    expect(generation).toBeGreaterThan(before.generation);
  });

  it("should do nothing about events that were not relayed yet", async () => {
    const head = await relayAll();
    const before = await readRelay(rig.store.db);
    for (const from of [head + 1n, 2n ** 64n - 1n]) {
      expect(await republish(from)).toMatchObject({
        fromRevision: head + 1n,
        throughRevision: head,
      });
    }
    expect(await readRelay(rig.store.db)).toEqual({ ...before, waitingMs: expect.any(Number) });
  });

  it("should have one effect and one answer for one request id", async () => {
    const head = await relayAll();
    const first = await republish(head, "r1");
    const { generation } = await readRelay(rig.store.db);
    expect(await republish(head, "r1")).toEqual(first);
    expect(await refusalOf(republish(head - 5n, "r1"))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
    expect(await readRelay(rig.store.db)).toMatchObject({ generation, revision: head - 1n });
  });

  it("should be refused to viewers", async () => {
    const refusal = await refusalOf(rig.events.republishEvents({ fromRevision: 1n }));
    expect(refusal.reason).toBe("ROLE_TOO_LOW");
  });

  it("should be refused for compacted revisions, and start with the oldest for 0", async () => {
    await compactEvents(rig.store, -60_000);
    await makeHistory(rig.store, 10);
    const head = await relayAll();
    const refusal = await refusalOf(republish(5n));
    expect(refusal).toMatchObject({
      reason: "REVISION_COMPACTED",
      metadata: { compactedRevision: `${head - 11n}` },
    });
    expect(await republish(0n)).toMatchObject({
      fromRevision: head - 10n,
      throughRevision: head,
    });
  });
});
