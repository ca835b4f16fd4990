import { bool, type ConfigValues, defineKeys, duration, int } from "@rollcall/runtime/config";

/** What can be configured of the registry. */
export const REGISTRY_KEYS = defineKeys({
  "Orchestrator.NodeManager.ManualApproval": {
    schema: bool(),
    default: false,
    doc: "Whether a node that registers for the first time waits for an operator's approval. Without it, it is approved at once. Nodes that are known keep what was decided about them.",
    aliases: ["Node.Requester.ManualNodeApproval"],
    flag: "manual-approval",
  },
  "Registry.RegistrationQueue": {
    schema: int({ min: 1, max: 100_000 }),
    default: 2_000,
    doc: "Registrations that may wait for the record at a time. Further ones are refused with OVERLOADED, and try again a little later.",
  },
  "Events.Retention": {
    schema: duration({ minMs: 60_000 }),
    default: 72 * 3_600_000,
    doc: "How long events are kept. Whoever asks for older ones is told from where the log goes on; NATS keeps what it was sent for Events.Nats.MaxAge, and loses what it could not be sent in this time.",
  },
});

/** The values of the registry's keys. */
export type RegistryConfig = ConfigValues<typeof REGISTRY_KEYS>;
