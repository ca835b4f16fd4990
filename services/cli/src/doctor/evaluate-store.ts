import { durationMs } from "@bufbuild/protobuf/wkt";
import type { StandbyFacts, StoreFacts } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { counted } from "../output/text.ts";
import { formatExactDuration } from "../output/units.ts";
import { type Finding, finding, fine, measured } from "./finding.ts";

/** The oldest and the newest major version of Postgres that Rollcall is tested with. */
const OLDEST = 13;
const NEWEST = 18;

const LATENCY_MS = { warning: 10, problem: 100 };
const WAIT_MS = { warning: 1_000, problem: 5_000 };
const CONNECTIONS_SHARE = { warning: 0.8, problem: 0.95 };
const STANDBY_BEHIND_MS = { warning: 10_000, problem: 60_000 };
const STANDBY_BEHIND_BYTES = { warning: 64 * 2 ** 20, problem: 2 ** 30 };

/** Evaluate what Postgres reports about itself. */
export function evaluateStore(facts: StoreFacts): readonly Finding[] {
  return [
    evaluateVersion(facts),
    ...evaluateSettings(facts),
    evaluateLatency(facts),
    evaluateConnections(facts),
    ...evaluateWaits(facts),
    ...evaluateReplication(facts),
  ];
}

function evaluateVersion({ version, versionNumber }: StoreFacts): Finding {
  const about = { check: "postgres-version", subject: "Postgres" };
  const major = Math.floor(versionNumber / 10_000);
  if (major < OLDEST) {
    return finding("problem", about, `version ${version} is not supported`, `upgrade it to ${NEWEST}`);
  }
  if (major > NEWEST) {
    const found = `version ${version} is newer than any version that Rollcall is tested with`;
    return finding("warning", about, found, "look for a newer release of Rollcall");
  }
  return fine(about.check, about.subject, `version ${version}`);
}

/** A setting that can lose decisions, or that lets the database grow without bound. */
interface BadSetting {
  readonly name: string;
  readonly value: string;
  readonly status: "problem" | "warning";
  readonly why: string;
}

const BAD_SETTINGS: readonly BadSetting[] = [
  { name: "fsync", value: "off", status: "problem", why: "a crash can destroy the database" },
  { name: "full_page_writes", value: "off", status: "problem", why: "a crash can destroy the database" },
  { name: "synchronous_commit", value: "off", status: "problem", why: "a crash loses acknowledged decisions" },
  { name: "default_transaction_read_only", value: "on", status: "problem", why: "nothing can be written" },
  { name: "autovacuum", value: "off", status: "warning", why: "the database grows and becomes slow" },
];

function evaluateSettings({ settings, standby }: StoreFacts): readonly Finding[] {
  const bad = BAD_SETTINGS.filter(({ name, value }) => settings[name] === value).map(({ name, value, status, why }) =>
    finding(
      status,
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

function evaluateLatency({ latency }: StoreFacts): Finding {
  const latencyMs = latency === undefined ? 0 : durationMs(latency);
  const found = `answers the simplest query in ${formatExactDuration(latencyMs)}`;
  const advice =
    "move Postgres and the control plane closer together, and check the load, the disk and the pooler of Postgres";
  return measured({ check: "postgres-latency", subject: "Postgres" }, latencyMs, LATENCY_MS, { found, advice });
}

function evaluateConnections({ connections, settings }: StoreFacts): Finding {
  const about = { check: "postgres-connections", subject: "Postgres" };
  const most = Number(settings.max_connections ?? 0) - Number(settings.superuser_reserved_connections ?? 0);
  if (!(most > 0)) return fine(about.check, about.subject, counted(connections, "connection"));
  const found = `${connections} of ${counted(most, "connection")} in use`;
  const advice = "raise max_connections, lower Database.PoolSize, or put a connection pooler in front of Postgres";
  return measured(about, connections / most, CONNECTIONS_SHARE, { found, advice });
}

function evaluateWaits({ waits }: StoreFacts): readonly Finding[] {
  const found = waits.map(({ type, event, statements, longest, heldBy }) => {
    const about = { check: "postgres-waits", subject: `${type} ${event}`.trim() };
    const waitedMs = longest === undefined ? 0 : durationMs(longest);
    const count = counted(statements, "statement has", "statements have");
    const holder = heldBy === "" ? "" : `; ${heldBy} holds the lock`;
    return measured(about, waitedMs, WAIT_MS, {
      found: `${count} been waiting, for up to ${formatExactDuration(Math.round(waitedMs))}${holder}`,
      advice: waitAdvice(type, event, heldBy),
    });
  });
  return found.length === 0 ? [fine("postgres-waits", "Postgres", "no statement has been waiting for long")] : found;
}

function waitAdvice(type: string, event: string, heldBy: string): string {
  const pid = /^pid (\d+)/.exec(heldBy)?.[1];
  if (type === "Lock" && pid !== undefined) return `end the holder of the lock: select pg_terminate_backend(${pid})`;
  if (type === "Lock") return "find the holder of the lock in pg_locks and pg_stat_activity, and end it";
  if (event === "SyncRep") {
    return "restart the standby in synchronous_standby_names, or remove it from that setting: commits wait for it";
  }
  return "check the disk and the load of Postgres";
}

function evaluateReplication({ standby, standbysTold, standbys }: StoreFacts): readonly Finding[] {
  const about = { check: "replication", subject: "standbys" };
  if (standby) return [];
  if (!standbysTold) {
    const advice = "grant pg_monitor to the user of Database.URL";
    return [finding("unknown", about, "the user of Postgres has no permission to see its standbys", advice)];
  }
  if (standbys.length === 0) return [fine(about.check, about.subject, "there are none")];
  return standbys.map(evaluateStandby);
}

function evaluateStandby({ name, address, state, behind, behindBytes }: StandbyFacts): Finding {
  const subject = [name, address].filter((it) => it !== "").join(" at ") || "a standby";
  const about = { check: "replication", subject };
  const advice = "check its log, its disk and the network to it: promoting it now would lose the changes it lacks";
  if (state !== "streaming") return finding("warning", about, `is in the state ${state}`, advice);
  const behindMs = behind === undefined ? 0 : durationMs(behind);
  const found = `is ${formatExactDuration(behindMs)} and ${counted(behindBytes, "byte")} behind`;
  const byTime = measured(about, behindMs, STANDBY_BEHIND_MS, { found, advice });
  return byTime.status === "ok"
    ? measured(about, Number(behindBytes), STANDBY_BEHIND_BYTES, { found, advice })
    : byTime;
}
