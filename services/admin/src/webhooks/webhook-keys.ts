import { checkedText, defineKeys, duration, list, optional, text } from "@rollcall/config";
import { networkProblem } from "@rollcall/domain";

const network = () => checkedText("an IP address, or a network such as 10.0.0.0/8", networkProblem);

export const WEBHOOK_KEYS = defineKeys({
  "Webhooks.AllowedNetworks": {
    schema: list(network()),
    default: [],
    doc:
      "Non-public addresses and networks that webhooks can be delivered to, for example 10.0.0.0/8. " +
      "Without any, no webhook can make the control plane connect to itself, to its private network or to a " +
      "cloud's metadata service. Each admin process needs the same value.",
  },
  "Webhooks.AuthorityFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "A PEM file with additional authorities for the certificates of webhook receivers. It is read at " + "startup.",
  },
  "Webhooks.Timeout": {
    schema: duration({ minMs: 100, maxMs: 60_000 }),
    default: 10_000,
    doc: "Time limit of one delivery to a webhook, from the lookup of its name to the end of the response.",
  },
  "Webhooks.PauseAfter": {
    schema: duration({ minMs: 1_000 }),
    default: 24 * 3_600_000,
    doc:
      "How long deliveries about one subject can fail before the webhook is paused, with an event. Keep it " +
      "well below Events.Retention of the registry, or events are compacted before an admin can act.",
  },
  "Webhooks.SecretKey": {
    schema: optional(text({ minLength: 32 })),
    default: undefined,
    secret: true,
    doc:
      "At least 32 random characters, stored outside the database, that encrypt the secrets of webhooks " +
      "in addition to the cluster's own key. Each admin process needs the same value. If it changes, webhooks pause " +
      "with SECRET_UNREADABLE until their secrets are rotated.",
  },
});
