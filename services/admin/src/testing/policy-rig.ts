import type { Client } from "@connectrpc/connect";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { replaceLabels } from "@rollcall/store";
import { addNode, addOrchestrator } from "./record.ts";
import { type Rig, type RigRecord, startRig } from "./rig.ts";

/**
 * An admin with three compute nodes: an operator labeled n1 with gpu, n2 reports gpu itself, and n3 joined with
 * the label zone.
 */
export interface PolicyRig extends Rig {
  readonly policies: Client<typeof HealthPolicyService>;
  /** Delete every policy. */
  clear(): Promise<void>;
}

export async function startPolicyRig(record: RigRecord): Promise<PolicyRig> {
  const rig = await startRig(record);
  const { store } = rig;
  const label = (id: string, tier: "agent" | "operator" | "token", key: string, value: string) =>
    store.transaction((tx) => replaceLabels(tx, id, tier, [{ key, value, tier }]));
  for (const id of ["n1", "n2", "n3"]) await addNode(store, id, "APPROVED");
  await label("n1", "operator", "gpu", "h100");
  await label("n2", "agent", "gpu", "h100");
  await label("n3", "token", "zone", "a");
  await addOrchestrator(store, "control");
  return {
    ...rig,
    policies: rig.clientOf(HealthPolicyService, rig.operator.text),
    clear: async () => {
      await store.db.deleteFrom("health_policies").execute();
    },
  };
}
