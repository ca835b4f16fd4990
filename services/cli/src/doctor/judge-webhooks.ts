import { type Webhook, WebhookState } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { type Finding, finding, fine } from "./finding.ts";

/** As many as there can be. */
export const MOST_JUDGED_WEBHOOKS = 100;

/** Judge the deliveries of webhooks. One that an admin has paused is as it should be. */
export function judgeWebhooks(webhooks: readonly Webhook[]): readonly Finding[] {
  const found = webhooks.flatMap(judgeWebhook);
  if (found.length > 0) return found;
  const count = webhooks.length;
  return [fine("webhooks", "admin", count === 0 ? "there are none" : `${count} are delivered, or held by an admin`)];
}

function judgeWebhook({ name, status }: Webhook): readonly Finding[] {
  if (status === undefined) return [];
  const about = { check: "webhooks", subject: name };
  const { state, pauseReason, pauseMessage, blockedSubjects, failure, lostThrough } = status;
  const lost =
    lostThrough === 0n
      ? []
      : [
          finding(
            "warning",
            about,
            `lost events up to revision ${lostThrough}, which were compacted before they were delivered`,
            "have its receiver read the state again; make Events.Retention longer",
          ),
        ];
  if (state === WebhookState.PAUSED) {
    if (pauseReason === "OPERATOR_PAUSED") return lost;
    const advice = `repair the receiver, see that \`rollcall webhook test ${name}\` works, then resume the webhook`;
    return [...lost, finding("problem", about, `is paused: ${pauseReason}, ${pauseMessage}`, advice)];
  }
  if (blockedSubjects === 0) return lost;
  const advice = "look at the receiver: deliveries are tried again, and the webhook pauses after Webhooks.PauseAfter";
  return [...lost, finding("warning", about, `${blockedSubjects} subjects wait for a delivery: ${failure}`, advice)];
}
