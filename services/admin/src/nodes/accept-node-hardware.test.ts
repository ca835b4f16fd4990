import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { InfoReport } from "@rollcall/domain";
import { getNode, saveInfo } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

/** Save a report that a node has this number of cores, as the registry or health does. */
const report = (id: string, cores: number) => save(id, { cpu: { threads: cores } });

async function save(id: string, info: InfoReport["info"]): Promise<void> {
  const summary = { cores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
  await rig.store.transaction((tx) =>
    saveInfo(tx, id, { info, digest: JSON.stringify(info), summary, agentLabels: {} }),
  );
}

const missing = async (id: string) => (await getNode(rig.store.db, id))?.missingHardware.map(({ message }) => message);

describe("acceptNodeHardware()", () => {
  it("should compare with the current hardware from then on", async () => {
    await addNode(rig.store, "shrunk", "APPROVED");
    await report("shrunk", 8);
    await report("shrunk", 4);
    expect(await missing("shrunk")).toEqual(["4 of 8 cores"]);
    await rig.admin.acceptNodeHardware({ node: "shrunk", reason: "two sockets sold" });
    expect(await missing("shrunk")).toEqual([]);
    expect((await eventsOf(rig.store, "shrunk")).at(-1)).toMatchObject({
      type: "node.hardware.accepted",
      actor: rig.operator.actor,
      message: "two sockets sold",
      before: { hardware: { cores: 8 } },
      after: { hardware: { cores: 4 } },
    });
    await report("shrunk", 3);
    expect(await missing("shrunk")).toEqual(["3 of 4 cores"]);
  });

  it("should match what an approval does", async () => {
    await addNode(rig.store, "waiting");
    await report("waiting", 8);
    await report("waiting", 4);
    expect(await missing("waiting")).toEqual([]);
    await rig.admin.approveNode({ node: "waiting" });
    await report("waiting", 2);
    expect(await missing("waiting")).toEqual(["2 of 4 cores"]);
  });

  it("should accept the first known GPUs if they were unknown at the approval", async () => {
    await addNode(rig.store, "blind");
    const info = { cpu: { threads: 8 } };
    await save("blind", { ...info, unknownFacts: [{ fact: "gpus", reason: "nvidia-smi gave no answer (too slow)" }] });
    await rig.admin.approveNode({ node: "blind" });
    await save("blind", { ...info, gpus: [{ uuid: "GPU-0" }, { index: 1, uuid: "GPU-1" }] });
    expect(await missing("blind")).toEqual([]);
    await save("blind", { ...info, gpus: [{ uuid: "GPU-0" }] });
    expect(await missing("blind")).toEqual(["GPU 1 is gone (GPU-1)"]);
  });

  it("should refuse no-ops, a node that has reported nothing, and an orchestrator", async () => {
    await addNode(rig.store, "same", "APPROVED");
    await report("same", 8);
    expect(await refusalOf(rig.admin.acceptNodeHardware({ node: "same" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_HARDWARE_UNCHANGED",
      metadata: { node: "same" },
    });
    await addNode(rig.store, "silent", "APPROVED");
    expect(await refusalOf(rig.admin.acceptNodeHardware({ node: "silent" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_HARDWARE_UNKNOWN",
    });
    await addOrchestrator(rig.store, "hub");
    expect(await refusalOf(rig.admin.acceptNodeHardware({ node: "hub" }))).toMatchObject({
      reason: "NODE_IS_ORCHESTRATOR",
    });
  });
});
