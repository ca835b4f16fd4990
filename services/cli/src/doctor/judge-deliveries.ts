import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Webhook, WebhookState } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import {
  type GetControlPlaneStatusResponse,
  type RelayStatus,
  UpkeepOutcome,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { formatDuration } from "../output/units.ts";
import { type Finding, finding, fine, measured } from "./finding.ts";

/** As many as there can be. */
export const MOST_JUDGED_WEBHOOKS = 100;

/** NATS acknowledges an event within milliseconds. */
const RELAY_WAITING_MS = { warning: 5_000, problem: 60_000 };
const RELAY_LAG = { warning: 1_000, problem: 100_000 };

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

/** Judge the relay to NATS, upkeep, and who may join. */
export function judgeStatus({ relay, upkeep, joining }: GetControlPlaneStatusResponse): readonly Finding[] {
  const failed = upkeep.filter(({ outcome }) => outcome === UpkeepOutcome.FAILED);
  const chores = failed.map(({ name, message }) =>
    finding("problem", { check: "upkeep", subject: name }, `the last run failed: ${message}`, "look at that log"),
  );
  const warnings = (joining?.warnings ?? []).map((warning) =>
    finding("warning", { check: "joining", subject: "registry" }, warning, "see docs/security.md"),
  );
  return [
    ...(relay?.configured ? [judgeRelay(relay)] : [fine("nats-relay", "NATS", "is not configured")]),
    ...(chores.length > 0 ? chores : [fine("upkeep", "registry", `${upkeep.length} chores are done in their turn`)]),
    ...warnings,
  ];
}

function judgeRelay({ instance, lag, waiting }: RelayStatus): Finding {
  const about = { check: "nats-relay", subject: "NATS" };
  if (instance === "") {
    const advice = "start NATS, or correct Events.NATS.URL: nothing is lost while the log keeps it (Events.Retention)";
    return finding("problem", about, `no process relays, and ${lag} revisions wait`, advice);
  }
  const advice = "look at the disk and the limits of the stream in NATS, and at the network to it";
  const waitingMs = waiting === undefined ? 0 : durationMs(waiting);
  if (waitingMs > RELAY_WAITING_MS.warning) {
    const found = `is slow: an event has waited ${formatDuration(waitingMs)} to be acknowledged, ${lag} revisions wait`;
    return measured(about, waitingMs, RELAY_WAITING_MS, { found, advice });
  }
  return measured(about, Number(lag), RELAY_LAG, { found: `is ${lag} revisions behind the log`, advice });
}
