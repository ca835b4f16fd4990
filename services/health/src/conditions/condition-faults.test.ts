import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { silentLogger } from "@rollcall/process";
import { storePort } from "@rollcall/testkit";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { seedGpus, takeGpuSample } from "../replica/gpu-samples.ts";
import type { LiveNode } from "../replica/live-node.ts";
import { holdsOf, join, newAgent, rig, useConditionsRig } from "../testing/conditions-rig.ts";
import { ConditionKeeper } from "./condition-keeper.ts";

useConditionsRig();

let joined = 0;

/** Let another node join, and return what the replica holds of it. */
async function newNode(): Promise<LiveNode> {
  joined += 1;
  const id = `node-${joined}`;
  await join(await newAgent(id, { gpuMaxCelsius: 85 }));
  const node = rig.replica.app.replica.nodes.find(id);
  if (node === undefined) throw new Error(`${id} is not held`);
  seedGpus(node, []);
  return node;
}

/** Give a node samples of a GPU that is too hot, in the replica's memory only. */
function heat(node: LiveNode): void {
  const usage = create(ResourceUsageSchema, { gpus: [{ index: 0, temperatureCelsius: 150 }] });
  for (let sample = 0; sample < 3; sample += 1) takeGpuSample(node, usage);
}

describe("ConditionKeeper", () => {
  it("should hold a node in trouble although a call to the store fails", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const { replica } = rig.replica.app;
      const store = storePort(ports, rig.store.reserved);
      const keeper = new ConditionKeeper({ store, replica, log: silentLogger });
      const node = await newNode();
      heat(node);
      keeper.add(node);
      await ports.attempt(() => keeper.turn());
      expect(await holdsOf(node.id)).toEqual(["HARDWARE"]);
    });
    expect(calls).toContain("store.change");
  });

  it("should update a node again that was added during an update", async () => {
    const { replica } = rig.replica.app;
    const [first, second] = [await newNode(), await newNode()];
    const store = { ...rig.store.reserved };
    const keeper = new ConditionKeeper({ store, replica, log: silentLogger });
    const { change } = store;
    store.change = async (fn) => {
      heat(second);
      keeper.add(second);
      return change(fn);
    };
    heat(first);
    keeper.add(first);
    keeper.add(second);
    await keeper.turn();
    expect([await holdsOf(first.id), await holdsOf(second.id)]).toEqual([["HARDWARE"], ["HARDWARE"]]);
  });
});
