import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { DesiredState, PlacementStrategy } from "@rollcall/api/rollcall/work/v1/work_pb";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { allowReaction, serviceOf } from "../testing/job-specs.ts";
import { Operators } from "../testing/operators.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const NODES = ["n1", "n2", "n3", "n4"];

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of NODES) await addWorkNode(database.store, id);
  workers = new FakeWorkers(database.store);
  rig = await startRig(database.store);
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

async function expectOn(job: string, nodeIds: readonly string[]): Promise<void> {
  await eventually(async () => {
    await workers.work(NODES);
    const { executions } = await rig.jobs.listExecutions({ job });
    const wanted = executions.filter(
      ({ replacedById, desired }) => replacedById === "" && desired === DesiredState.RUN,
    );
    expect(wanted.map(({ nodeId }) => nodeId).sort()).toEqual(nodeIds);
  });
}

it("should place a service without a strategy evenly: when it is submitted, after a drain, and after a loss", async () => {
  const operators = new Operators(database.store);
  await operators.drain("n1");
  await operators.undrain("n1");
  const { job } = await rig.jobs.submitJob({
    spec: serviceOf("web", 3, { update: { minReadyTime: durationFromMs(0) } }),
  });
  // The stored spec is the submitted one, without the default placement.
  expect(job?.spec?.placement).toBeUndefined();
  await expectOn("web", ["n2", "n3", "n4"]);
  await operators.drain("n4");
  await expectOn("web", ["n1", "n2", "n3"]);
  await operators.undrain("n4");
  workers.turnOff("n2");
  await allowReaction(database.store, "n2");
  await expectOn("web", ["n1", "n3", "n4"]);
  const packed = { placement: { strategy: PlacementStrategy.BIN_PACK } };
  await rig.jobs.submitJob({ spec: serviceOf("packed", 3, packed) });
  await eventually(async () => {
    const { executions } = await rig.jobs.listExecutions({ job: "packed" });
    expect(new Set(executions.map(({ nodeId }) => nodeId)).size).toBe(1);
    expect(executions).toHaveLength(3);
  });
});
