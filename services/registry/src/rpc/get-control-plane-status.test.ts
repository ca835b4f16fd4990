import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { compactEvents, openRelay, RELAY_LEASE, saveRelay, takeLease } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { makeHistory } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("GetControlPlaneStatus", () => {
  it("should report that nothing has happened yet", async () => {
    expect(await rig.registry.getControlPlaneStatus({})).toMatchObject({
      log: { headRevision: 0n, compactedRevision: 0n },
      relay: { configured: false, instance: "", revision: 0n, lag: 0n },
      upkeep: [],
    });
  });

  it("should report the log, the relay and upkeep", async () => {
    const { db } = rig.store;
    await makeHistory(rig.store, 20);
    await compactEvents(rig.store, -60_000);
    const lease = { name: RELAY_LEASE, instance: "i1", service: "registry", address: "" };
    await takeLease(db, lease);
    const generation = (await openRelay(db, lease))?.generation ?? 0;
    await saveRelay(rig.store, { revision: 17n, generation, logId: rig.store.logId() });
    await db
      .insertInto("upkeep_runs")
      .values({ name: "sweep", instance: "i1", outcome: "FAILED", message: "why", row_count: 3n })
      .execute();
    const status = await rig.registry.getControlPlaneStatus({});
    expect(status).toMatchObject({
      clusterId: rig.store.clusterId(),
      log: { logId: rig.store.logId(), headRevision: 20n, compactedRevision: 19n },
      relay: { configured: false, instance: "i1", revision: 17n, lag: 3n },
      upkeep: [{ name: "sweep", instance: "i1", outcome: 3, rows: 3n, message: "why", runs: 1n }],
    });
    expect(status.upkeep[0]?.endTime).toBeUndefined();
  });
});
