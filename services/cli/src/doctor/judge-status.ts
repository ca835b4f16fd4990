import { type GetControlPlaneStatusResponse, UpkeepOutcome } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type Finding, finding, fine, measured } from "./finding.ts";

const RELAY_LAG = { warning: 1_000, problem: 100_000 };

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

function judgeRelay({ instance, lag }: { readonly instance: string; readonly lag: bigint }): Finding {
  const about = { check: "nats-relay", subject: "NATS" };
  if (instance === "") {
    const advice = "start NATS, or correct Events.NATS.URL: nothing is lost while the log keeps it (Events.Retention)";
    return finding("problem", about, `no process relays, and ${lag} revisions wait`, advice);
  }
  const found = `is ${lag} revisions behind the log`;
  const advice = "look at the disk and the limits of the stream in NATS";
  return measured(about, Number(lag), RELAY_LAG, { found, advice });
}
