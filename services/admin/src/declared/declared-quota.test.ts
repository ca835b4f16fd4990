import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { DeclaredStateService } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { getJob, saveJobEdit } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

const QUOTA = { jobs: 4, executions: 20, millicores: 10_000 };

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase(), {}, { quota: QUOTA });
});
beforeEach(async () => {
  for (const table of ["declared_objects", "job_versions", "jobs"] as const) {
    await rig.store.db.deleteFrom(table).execute();
  }
});
afterAll(() => rig.close());

const as = async (role: "submitter" | "admin"): Promise<Client<typeof DeclaredStateService>> =>
  rig.clientOf(DeclaredStateService, (await createToken(rig.store, role)).text);

const job = (name: string, count: number, millicores = 0) => {
  const process = { command: ["serve"] };
  const task = { case: "process", value: process } as const;
  const spec = { name, type: JobType.SERVICE, count, task, resources: { millicores } };
  return { object: { case: "job", value: { spec } } } as const;
};
const countOf = async (name: string) => (await getJob(rig.store.db, name))?.count ?? null;

describe("owners' quotas and declared state", () => {
  it("should count all jobs of a call together, also in its plan, and apply nothing that exceeds them", async () => {
    const state = await as("submitter");
    const owner = "team";
    for (const [objects, quota] of [
      [[job("a", 10), job("b", 11)], "executions"],
      [[job("a", 2, 4_000), job("b", 1, 4_000)], "cores"],
      [["a", "b", "c", "d", "e"].map((name) => job(name, 1)), "jobs"],
    ] as const) {
      const refusal = { reason: "QUOTA_EXCEEDED", metadata: { quota } };
      expect(await refusalOf(state.planState({ objects: [...objects], owner }))).toMatchObject(refusal);
      expect(await refusalOf(state.applyState({ objects: [...objects], owner }))).toMatchObject(refusal);
    }
    expect(await countOf("a")).toBeNull();
    await state.applyState({ objects: [job("a", 10), job("b", 10)], owner });
    expect([await countOf("a"), await countOf("b")]).toEqual([10, 10]);
  });

  it("should let one job use what another frees in the same call, in any order", async () => {
    const state = await as("submitter");
    await state.applyState({ objects: [job("a", 5), job("b", 15)], owner: "team" });
    await state.applyState({ objects: [job("a", 15), job("b", 5)], owner: "team" });
    expect([await countOf("a"), await countOf("b")]).toEqual([15, 5]);
    await state.applyState({ objects: [job("a", 5), job("b", 15)], owner: "team" });
    expect([await countOf("a"), await countOf("b")]).toEqual([5, 15]);
  });

  it("should not be exceeded by concurrent calls", async () => {
    const token = (await createToken(rig.store, "submitter")).text;
    const state = rig.clientOf(DeclaredStateService, token);
    const calls = Array.from({ length: 10 }, (_, index) =>
      state.applyState({ objects: [job(`rush-${index}`, 6)], owner: `team-${index}` }).then(
        () => "applied",
        () => "refused",
      ),
    );
    expect((await Promise.all(calls)).filter((outcome) => outcome === "applied")).toHaveLength(3);
  });

  it("should count a restarted job for its owner, and not limit admins", async () => {
    const [admin, state] = [await as("admin"), await as("submitter")];
    const objects = [job("large", 30)];
    await admin.applyState({ objects, owner: "team" });
    await rig.store.transaction((tx) => saveJobEdit(tx, "large", { state: "STOPPED" }));
    expect(await refusalOf(state.applyState({ objects, owner: "team" }))).toMatchObject({
      reason: "QUOTA_EXCEEDED",
      metadata: { wanted: "30" },
    });
    await admin.applyState({ objects, owner: "team" });
    expect(await countOf("large")).toBe(30);
  });
});
