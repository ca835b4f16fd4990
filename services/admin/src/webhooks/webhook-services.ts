import type { AdminServices } from "../admin-services.ts";
import type { WebhookSender } from "./delivery/webhook-sender.ts";
import type { SecretSeal } from "./seal-secret.ts";

/** What the methods of webhooks work with. */
export interface WebhookServices extends AdminServices {
  readonly webhooks: WebhookParts;
}

/** What methods and publisher share. */
export interface WebhookParts {
  readonly sender: WebhookSender;
  readonly seal: SecretSeal;
}
