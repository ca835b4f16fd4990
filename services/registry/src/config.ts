import { bool, type ConfigValues, defineKeys, duration, int, oneOf, optional } from "@rollcall/config";
import type { JoinTokenEnforcement } from "@rollcall/domain";
import { JOIN_KEYS } from "./join-keys.ts";

/** What can be configured of the registry. */
export const REGISTRY_KEYS = defineKeys({
  "Orchestrator.NodeManager.ManualApproval": {
    schema: bool(),
    default: false,
    doc:
      "Whether a node that registers for the first time waits for an operator's approval. Without it, it is " +
      "approved at once. Nodes that are known keep what was decided about them.",
    aliases: ["Node.Requester.ManualNodeApproval", "Requester.ManualNodeApproval", "ManualNodeApproval"],
    flag: "manual-approval",
  },
  "Orchestrator.NodeManager.JoinTokens": {
    schema: oneOf<JoinTokenEnforcement>(["none", "warn", "strict"]),
    default: "none" as const,
    doc:
      "How a node that registers for the first time without a join token is treated: none admits it like others, " +
      "warn admits it, counts it and names it in `rollcall status`, strict refuses it. A token that is given " +
      "must hold in any case. Nodes that are known return without one.",
    flag: "join-tokens",
  },
  "Orchestrator.NodeManager.CollectAfter": {
    schema: optional(duration({ minMs: 60_000 })),
    default: undefined,
    doc:
      "How long a compute node that is DISCONNECTED and UNKNOWN is kept; then it is removed, and a tombstone " +
      "stays. Rejected, banned and marked nodes are kept. Without it, nodes are kept until an operator deletes " +
      "them.",
  },
  "Orchestrator.NodeManager.EphemeralAfter": {
    schema: duration({ minMs: 10_000 }),
    default: 300_000,
    doc:
      "How long an ephemeral node, which is one whose join token says so, is kept after it was disconnected; " +
      "after a goodbye it is kept a minute at most. It is counted from when the control plane could be reached " +
      "again, so that a restart of it removes no node.",
  },
  "Registry.RegistrationQueue": {
    schema: int({ min: 1, max: 100_000 }),
    default: 2_000,
    doc:
      "Registrations that may wait for the record at a time. Further ones are refused with OVERLOADED, and try " +
      "again a little later.",
  },
  "Registry.RegistrationsPerSecond": {
    schema: int({ min: 1, max: 1_000_000 }),
    default: 5_000,
    doc:
      "Registrations a second that one registry lets succeed, twice as many at once. Further ones are refused " +
      "with REGISTRATION_LIMITED and are told when to come, one after the other.",
  },
  "Registry.RegistrationsPerTokenPerSecond": {
    schema: int({ min: 1, max: 1_000_000 }),
    default: 2_000,
    doc:
      "The same for each join token by itself, so that one that leaked cannot fill the record at once. Above " +
      "Registry.RegistrationsPerSecond it limits nothing.",
  },
  ...JOIN_KEYS,
  "Events.Retention": {
    schema: duration({ minMs: 60_000 }),
    default: 72 * 3_600_000,
    doc:
      "How long events are kept. A reader that asks for older ones learns where the log now begins; NATS keeps " +
      "what it was sent for Events.Nats.MaxAge, and loses what it could not be sent in this time.",
  },
});

/** The values of the registry's keys. */
export type RegistryConfig = ConfigValues<typeof REGISTRY_KEYS>;
