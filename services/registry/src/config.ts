import { bool, type ConfigValues, defineKeys, duration, int, oneOf, optional } from "@rollcall/config";
import type { JoinTokenEnforcement } from "@rollcall/domain";
import { JOIN_KEYS } from "./join-keys.ts";

export const REGISTRY_KEYS = defineKeys({
  "Orchestrator.NodeManager.ManualApproval": {
    schema: bool(),
    default: false,
    doc:
      "Whether a new node must wait for an operator's approval. Otherwise it is " +
      "approved at once. Decisions about existing nodes are kept.",
    aliases: ["Node.Requester.ManualNodeApproval", "Requester.ManualNodeApproval", "ManualNodeApproval"],
    flag: "manual-approval",
  },
  "Orchestrator.NodeManager.JoinTokens": {
    schema: oneOf<JoinTokenEnforcement>(["none", "warn", "strict"]),
    default: "none" as const,
    doc:
      "How to treat a new node without a join token: none admits it like any other, " +
      "warn admits it, counts it and names it in `rollcall status`, strict refuses it. If a token is given, it " +
      "must always be valid. Existing nodes need no token.",
    flag: "join-tokens",
  },
  "Orchestrator.NodeManager.CollectAfter": {
    schema: optional(duration({ minMs: 60_000 })),
    default: undefined,
    doc:
      "How long a DISCONNECTED and UNKNOWN compute node is kept before it is removed, leaving a tombstone. " +
      "Rejected, banned and marked nodes are kept. Without this key, nodes are kept until an operator deletes " +
      "them.",
  },
  "Orchestrator.NodeManager.EphemeralAfter": {
    schema: duration({ minMs: 10_000 }),
    default: 300_000,
    doc:
      "How long an ephemeral node (one that joined with an ephemeral token) is kept after it disconnected; " +
      "if its agent stopped on purpose, at most a minute. The time starts only once the control plane is " +
      "reachable, so " +
      "that a restart of the control plane removes no node.",
  },
  "Registry.RegistrationQueue": {
    schema: int({ min: 1, max: 100_000 }),
    default: 2_000,
    doc:
      "Maximum number of queued registrations. Further ones are refused with OVERLOADED, and agents retry " +
      "them later.",
  },
  "Registry.RegistrationsPerSecond": {
    schema: int({ min: 1, max: 1_000_000 }),
    default: 5_000,
    doc:
      "Maximum registrations per second in one registry, with bursts of twice as many. Further ones are refused " +
      "with REGISTRATION_LIMITED and a retry delay.",
  },
  "Registry.RegistrationsPerTokenPerSecond": {
    schema: int({ min: 1, max: 1_000_000 }),
    default: 2_000,
    doc:
      "The same limit for each join token, so that a leaked token cannot fill the store at once. Above " +
      "Registry.RegistrationsPerSecond it has no effect.",
  },
  ...JOIN_KEYS,
  "Events.Retention": {
    schema: duration({ minMs: 60_000 }),
    default: 72 * 3_600_000,
    doc:
      "How long events are kept. A reader that requests older ones gets the first available revision. NATS keeps " +
      "events for Events.Nats.MaxAge, and misses those that could not be relayed within this time.",
  },
});

export type RegistryConfig = ConfigValues<typeof REGISTRY_KEYS>;
