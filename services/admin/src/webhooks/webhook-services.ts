import type { AdminServices } from "../admin-services.ts";
import type { WebhookSender } from "./delivery/webhook-sender.ts";
import type { SecretSeal } from "./seal-secret.ts";

/** The objects that the methods of webhooks use. */
export interface WebhookServices extends AdminServices {
  readonly webhooks: WebhookParts;
}

/** The objects that the methods and the publisher share. */
export interface WebhookParts {
  readonly sender: WebhookSender;
  readonly seal: SecretSeal;
}
