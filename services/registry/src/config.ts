import { bool, type ConfigValues, defineKeys, int } from "@rollcall/runtime/config";

/** What can be configured of the registry. */
export const REGISTRY_KEYS = defineKeys({
  "Orchestrator.NodeManager.ManualApproval": {
    schema: bool(),
    default: false,
    doc: "Whether a node that registers for the first time waits for an operator's approval. Without it, it is approved at once. Nodes that are known keep what was decided about them.",
    flag: "manual-approval",
  },
  "Registry.RegistrationQueue": {
    schema: int({ min: 1, max: 100_000 }),
    default: 2_000,
    doc: "Registrations that may wait for the record at a time. Further ones are refused with OVERLOADED, and try again a little later.",
  },
});

/** The values of the registry's keys. */
export type RegistryConfig = ConfigValues<typeof REGISTRY_KEYS>;
