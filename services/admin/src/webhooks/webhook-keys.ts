import { checkedText, defineKeys, duration, list, optional, text } from "@rollcall/config";
import { networkProblem } from "@rollcall/domain";

const network = () => checkedText("an IP address, or a network such as 10.0.0.0/8", networkProblem);

/** What can be configured of webhooks. */
export const WEBHOOK_KEYS = defineKeys({
  "Webhooks.AllowedNetworks": {
    schema: list(network()),
    default: [],
    doc:
      "Addresses and networks to which webhooks may lead although they are not public, for example 10.0.0.0/8. " +
      "Without any, no webhook can make the control plane connect to itself, to its private network or to the " +
      "metadata of a cloud. Each admin process needs the same.",
  },
  "Webhooks.AuthorityFile": {
    schema: optional(text()),
    default: undefined,
    doc:
      "A file with further authorities, in PEM, of which certificates of webhooks' receivers may be. It is read at " +
      "the start.",
  },
  "Webhooks.Timeout": {
    schema: duration({ minMs: 100, maxMs: 60_000 }),
    default: 10_000,
    doc: "How long one delivery to a webhook may take, from the look-up of its name to the end of the answer.",
  },
  "Webhooks.PauseAfter": {
    schema: duration({ minMs: 1_000 }),
    default: 24 * 3_600_000,
    doc:
      "How long the events of one subject may fail to be delivered before the webhook is paused, which is an event. " +
      "Well below Events.Retention of the registry, or events are compacted before an admin can act.",
  },
  "Webhooks.SecretKey": {
    schema: optional(text({ minLength: 32 })),
    default: undefined,
    secret: true,
    doc:
      "A text of at least 32 random characters, kept outside of the record, with which the secrets of webhooks are " +
      "sealed besides the cluster's own. Each admin process needs the same. When it is changed, webhooks pause with " +
      "SECRET_UNREADABLE until their secrets are rotated.",
  },
});
