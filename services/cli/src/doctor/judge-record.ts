import { durationMs } from "@bufbuild/protobuf/wkt";
import type { RecordFacts, StandbyFacts } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { formatExactDuration } from "../output/units.ts";
import { type Finding, finding, fine, measured } from "./finding.ts";

/** Major versions that Rollcall is tested with. */
const OLDEST = 13;
const NEWEST = 18;

const LATENCY_MS = { warning: 10, problem: 100 };
const WAIT_MS = { warning: 1_000, problem: 5_000 };
const CONNECTIONS_SHARE = { warning: 0.8, problem: 0.95 };
const STANDBY_BEHIND_MS = { warning: 10_000, problem: 60_000 };
const STANDBY_BEHIND_BYTES = { warning: 64 * 2 ** 20, problem: 2 ** 30 };

/** Judge what Postgres says of itself. */
export function judgeRecord(facts: RecordFacts): readonly Finding[] {
  return [
    judgeVersion(facts),
    ...judgeSettings(facts),
    judgeLatency(facts),
    judgeConnections(facts),
    ...judgeWaits(facts),
    ...judgeReplication(facts),
  ];
}

function judgeVersion({ version, versionNumber }: RecordFacts): Finding {
  const about = { check: "postgres-version", subject: "Postgres" };
  const major = Math.floor(versionNumber / 10_000);
  if (major < OLDEST) {
    return finding("problem", about, `version ${version} is not supported`, `upgrade it to ${NEWEST}`);
  }
  if (major > NEWEST) {
    const found = `version ${version} is newer than what Rollcall is tested with`;
    return finding("warning", about, found, "look for a newer release of Rollcall");
  }
  return fine(about.check, about.subject, `version ${version}`);
}

/** A setting with which decisions can be lost, or the record grows without a bound. */
interface BadSetting {
  readonly name: string;
  readonly value: string;
  readonly verdict: "problem" | "warning";
  readonly why: string;
}

const BAD_SETTINGS: readonly BadSetting[] = [
  { name: "fsync", value: "off", verdict: "problem", why: "a crash can destroy the record" },
  { name: "full_page_writes", value: "off", verdict: "problem", why: "a crash can destroy the record" },
  { name: "synchronous_commit", value: "off", verdict: "problem", why: "a crash loses decisions that were answered" },
  { name: "default_transaction_read_only", value: "on", verdict: "problem", why: "nothing can be written" },
  { name: "autovacuum", value: "off", verdict: "warning", why: "the record grows and becomes slow" },
];

function judgeSettings({ settings, standby }: RecordFacts): readonly Finding[] {
  const bad = BAD_SETTINGS.filter(({ name, value }) => settings[name] === value).map(({ name, value, verdict, why }) =>
    finding(
      verdict,
      { check: "postgres-settings", subject: name },
      `is ${value}: ${why}`,
      `set ${name} = ${value === "off" ? "on" : "off"} for the server, the database and the user, and reload`,
    ),
  );
  const stray = standby
    ? [
        finding(
          "problem",
          { check: "postgres-settings", subject: "Postgres" },
          "is a standby, which cannot be written to",
          "point Database.URL at the primary, or promote the standby",
        ),
      ]
    : [];
  const all = [...bad, ...stray];
  return all.length > 0 ? all : [fine("postgres-settings", "Postgres", "settings are safe")];
}

function judgeLatency({ latency }: RecordFacts): Finding {
  const latencyMs = latency === undefined ? 0 : durationMs(latency);
  const found = `answers the simplest question in ${formatExactDuration(latencyMs)}`;
  const advice =
    "bring Postgres and the control plane closer together, and look at the load, the disk and the pooler of Postgres";
  return measured({ check: "postgres-latency", subject: "Postgres" }, latencyMs, LATENCY_MS, { found, advice });
}

function judgeConnections({ connections, settings }: RecordFacts): Finding {
  const about = { check: "postgres-connections", subject: "Postgres" };
  const most = Number(settings.max_connections ?? 0) - Number(settings.superuser_reserved_connections ?? 0);
  if (!(most > 0)) return fine(about.check, about.subject, `${connections} connections`);
  const found = `${connections} of ${most} connections are used`;
  const advice = "raise max_connections, lower Database.PoolSize, or put a pooler in between";
  return measured(about, connections / most, CONNECTIONS_SHARE, { found, advice });
}

function judgeWaits({ waits }: RecordFacts): readonly Finding[] {
  const found = waits.map(({ type, event, statements, longest, heldBy }) => {
    const about = { check: "postgres-waits", subject: `${type} ${event}`.trim() };
    const waitedMs = longest === undefined ? 0 : durationMs(longest);
    const count = statements === 1 ? "a statement has" : `${statements} statements have`;
    const holder = heldBy === "" ? "" : `, which ${heldBy} holds`;
    return measured(about, waitedMs, WAIT_MS, {
      found: `${count} waited for it, for up to ${formatExactDuration(Math.round(waitedMs))}${holder}`,
      advice: waitAdvice(type, event, heldBy),
    });
  });
  return found.length === 0 ? [fine("postgres-waits", "Postgres", "no statement waits for long")] : found;
}

function waitAdvice(type: string, event: string, heldBy: string): string {
  const pid = /^pid (\d+)/.exec(heldBy)?.[1];
  if (type === "Lock" && pid !== undefined) return `end what holds the lock: select pg_terminate_backend(${pid})`;
  if (type === "Lock") return "look in pg_locks and pg_stat_activity for what holds the lock, and end it";
  if (event === "SyncRep") {
    return "start the standby of synchronous_standby_names again, or take it out of that setting: commits wait for it";
  }
  return "look at the disk of Postgres and at its load";
}

function judgeReplication({ standby, standbysTold, standbys }: RecordFacts): readonly Finding[] {
  const about = { check: "replication", subject: "standbys" };
  if (standby) return [];
  if (!standbysTold) {
    const advice = "grant pg_monitor to the user of Database.URL";
    return [finding("unknown", about, "Postgres does not tell this user about its standbys", advice)];
  }
  if (standbys.length === 0) return [fine(about.check, about.subject, "there are none")];
  return standbys.map(judgeStandby);
}

function judgeStandby({ name, address, state, behind, behindBytes }: StandbyFacts): Finding {
  const subject = [name, address].filter((it) => it !== "").join(" at ") || "a standby";
  const about = { check: "replication", subject };
  const advice = "look at its log and disk, and at the network to it: what it lacks is lost when it is promoted now";
  if (state !== "streaming") return finding("warning", about, `is in the state ${state}`, advice);
  const behindMs = behind === undefined ? 0 : durationMs(behind);
  const found = `is ${formatExactDuration(behindMs)} and ${behindBytes} bytes behind`;
  const byTime = measured(about, behindMs, STANDBY_BEHIND_MS, { found, advice });
  return byTime.verdict === "ok"
    ? measured(about, Number(behindBytes), STANDBY_BEHIND_BYTES, { found, advice })
    : byTime;
}
