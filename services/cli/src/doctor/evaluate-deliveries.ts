import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Webhook, WebhookState } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import {
  type GetControlPlaneStatusResponse,
  type RelayStatus,
  UpkeepOutcome,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { counted } from "../output/text.ts";
import { formatDuration } from "../output/units.ts";
import { type Finding, finding, fine, measured } from "./finding.ts";

/** Maximum number of webhooks of a cluster. */
export const MOST_EVALUATED_WEBHOOKS = 100;

/** Limits for the time that an event waits for NATS. NATS acknowledges an event within milliseconds. */
const RELAY_WAITING_MS = { warning: 5_000, problem: 60_000 };
const RELAY_LAG = { warning: 1_000, problem: 100_000 };

/** Evaluate the deliveries of webhooks. A webhook that an admin has paused is not a problem. */
export function evaluateWebhooks(webhooks: readonly Webhook[]): readonly Finding[] {
  const found = webhooks.flatMap(evaluateWebhook);
  if (found.length > 0) return found;
  const count = webhooks.length;
  return [
    fine("webhooks", "admin", count === 0 ? "there are none" : `no failing deliveries of ${counted(count, "webhook")}`),
  ];
}

function evaluateWebhook({ name, status }: Webhook): readonly Finding[] {
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
            "let its receiver read the full state again; increase Events.Retention",
          ),
        ];
  if (state === WebhookState.PAUSED) {
    if (pauseReason === "OPERATOR_PAUSED") return lost;
    const advice = `repair the receiver, check it with \`rollcall webhook test ${name}\`, then resume the webhook`;
    return [...lost, finding("problem", about, `is paused: ${pauseReason}, ${pauseMessage}`, advice)];
  }
  if (blockedSubjects === 0) return lost;
  const advice = "check the receiver: deliveries are retried, and the webhook pauses after Webhooks.PauseAfter";
  return [
    ...lost,
    finding(
      "warning",
      about,
      `${counted(blockedSubjects, "subject is", "subjects are")} waiting for a delivery: ${failure}`,
      advice,
    ),
  ];
}

/** Evaluate the relay to NATS, the upkeep tasks, and the rules for joining. */
export function evaluateStatus({ relay, upkeep, joining }: GetControlPlaneStatusResponse): readonly Finding[] {
  const failed = upkeep.filter(({ outcome }) => outcome === UpkeepOutcome.FAILED);
  const chores = failed.map(({ name, message }) =>
    finding(
      "problem",
      { check: "upkeep", subject: name },
      `the last run failed: ${message}`,
      "see the logs of the control plane for the cause",
    ),
  );
  const warnings = (joining?.warnings ?? []).map((warning) =>
    finding("warning", { check: "joining", subject: "registry" }, warning, "see docs/security.md"),
  );
  return [
    ...(relay?.configured ? [evaluateRelay(relay)] : [fine("nats-relay", "NATS", "is not configured")]),
    ...(chores.length > 0
      ? chores
      : [fine("upkeep", "registry", `no failed run of ${counted(upkeep.length, "upkeep task")}`)]),
    ...warnings,
  ];
}

function evaluateRelay({ instance, lag, waiting }: RelayStatus): Finding {
  const about = { check: "nats-relay", subject: "NATS" };
  if (instance === "") {
    const advice = "start NATS, or correct Events.NATS.URL: no event is lost within Events.Retention";
    return finding(
      "problem",
      about,
      `no process relays events, and ${counted(lag, "revision is", "revisions are")} waiting`,
      advice,
    );
  }
  const advice = "check the disk and the stream limits of NATS, and the network to it";
  const waitingMs = waiting === undefined ? 0 : durationMs(waiting);
  if (waitingMs > RELAY_WAITING_MS.warning) {
    const behind = counted(lag, "revision waits", "revisions wait");
    const found = `is slow: an event has been unacknowledged for ${formatDuration(waitingMs)}, ${behind}`;
    return measured(about, waitingMs, RELAY_WAITING_MS, { found, advice });
  }
  return measured(about, Number(lag), RELAY_LAG, { found: `is ${counted(lag, "revision")} behind the log`, advice });
}
