import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ProcessFacts } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { formatDuration, formatExactDuration } from "../output/units.ts";
import { type Finding, finding, fine, measured } from "./finding.ts";
import { judgeExpiry } from "./judge-address.ts";

const CLOCK_MS = { warning: 2_000, problem: 30_000 };
const LATENCY_MS = { warning: 20, problem: 200 };
const FEED_LAG_MS = { warning: 10_000, problem: 60_000 };
/** A call that waits for 5 s is refused. */
const CALLS_WAIT_MS = { warning: 1_000, problem: 4_000 };
const FILES_SHARE = { warning: 0.8, problem: 0.95 };
/** A report is written every 15 s. */
const REPORT_AGE_MS = { warning: 60_000, problem: 600_000 };
const SERVICES = ["registry", "health", "admin", "scheduler"] as const;
const SYNC = "let NTP (chrony, systemd-timesyncd) keep the clock of that machine";

/** Judge what the processes of the control plane say of themselves. */
export function judgeProcesses(processes: readonly ProcessFacts[], nowMs: number): readonly Finding[] {
  return [...judgePresence(processes), ...processes.flatMap((process) => judgeProcess(process, nowMs))];
}

/** Judge how far the clock of the server that answered is from this machine's. */
export function judgeServerClock(aheadMs: number, uncertainMs: number): Finding {
  const about = { check: "clock", subject: "the server that answers" };
  const certainMs = Math.max(0, Math.abs(aheadMs) - uncertainMs);
  const found = `${clockText(aheadMs, certainMs)} of this machine`;
  return measured(about, certainMs, CLOCK_MS, { found, advice: SYNC.replace("that machine", "both machines") });
}

function judgePresence(processes: readonly ProcessFacts[]): readonly Finding[] {
  const runs = (service: string) =>
    processes.some((it) => it.service === "up" || it.service.split(",").includes(service));
  const missing = SERVICES.filter((service) => !runs(service));
  if (missing.length === 0) return [fine("processes", "control plane", `${processes.length} processes report`)];
  return missing.map((service) =>
    finding(
      "problem",
      { check: "processes", subject: service },
      "no process of it reports",
      `start \`rollcall serve ${service}\`; one that has just started does not report yet`,
    ),
  );
}

function judgeProcess(process: ProcessFacts, nowMs: number): readonly Finding[] {
  const { instance: subject, clockAhead, recordLatency, feedLag, callsWaiting, age } = process;
  const aheadMs = clockAhead === undefined ? 0 : durationMs(clockAhead);
  const latencyMs = recordLatency === undefined ? 0 : durationMs(recordLatency);
  const certainMs = Math.max(0, Math.abs(aheadMs) - latencyMs / 2);
  const lagMs = feedLag === undefined ? 0 : durationMs(feedLag);
  const ageMs = age === undefined ? 0 : durationMs(age);
  const waitingMs = callsWaiting === undefined ? 0 : durationMs(callsWaiting);
  const certificate = process.certificateExpireTime;
  return [
    measured({ check: "report", subject }, ageMs, REPORT_AGE_MS, {
      found: `reported ${formatDuration(ageMs)} ago`,
      advice: "look at its log: it cannot write to Postgres, or stands still",
    }),
    measured({ check: "clock", subject }, certainMs, CLOCK_MS, {
      found: `${clockText(aheadMs, certainMs)} of Postgres`,
      advice: SYNC,
    }),
    measured({ check: "record-latency", subject }, latencyMs, LATENCY_MS, {
      found: `Postgres answers it in ${formatExactDuration(latencyMs)}`,
      advice: "look at the network between the two, and at the load of Postgres",
    }),
    measured({ check: "log-lag", subject }, lagMs, FEED_LAG_MS, {
      found: `has had the whole log ${formatDuration(lagMs)} ago`,
      advice: "search its log for 'feed cannot read the log'",
    }),
    judgeNotifications(process),
    measured({ check: "calls-wait", subject }, waitingMs, CALLS_WAIT_MS, {
      found:
        waitingMs === 0
          ? "no call waited for a connection"
          : `calls waited for one, for up to ${formatExactDuration(Math.round(waitingMs))}`,
      advice: "see what takes long in Postgres; where nothing does, raise Database.PoolSize and max_connections",
    }),
    judgeFiles(process),
    ...(certificate === undefined ? [] : [judgeExpiry(subject, timestampMs(certificate), nowMs)]),
    ...judgeNats(process),
  ];
}

function clockText(aheadMs: number, certainMs: number): string {
  if (certainMs < 1) return "agrees with the clock";
  return `is ${formatExactDuration(Math.round(certainMs))} ${aheadMs < 0 ? "behind" : "ahead of"} the clock`;
}

function judgeNotifications({ instance: subject, lacksNotifications }: ProcessFacts): Finding {
  const about = { check: "notifications", subject };
  if (!lacksNotifications) return fine(about.check, subject, "arrive");
  const advice =
    "set Database.DirectURL to the address of Postgres itself and restart it; a pooler in transaction mode between " +
    "the two loses notifications";
  return finding("problem", about, "do not arrive from Postgres: it finds changes by polling, seconds late", advice);
}

function judgeFiles({ instance: subject, openFiles, openFilesLimit }: ProcessFacts): Finding {
  const about = { check: "descriptors", subject };
  if (openFilesLimit === 0n || openFiles === 0) return fine(about.check, subject, "are not limited, or not known");
  const found = `${openFiles} of ${openFilesLimit} are used`;
  const advice = "raise ulimit -n (LimitNOFILE= of the unit) and restart it, or lower Listen.MaxConnections";
  return measured(about, openFiles / Number(openFilesLimit), FILES_SHARE, { found, advice });
}

function judgeNats({ instance: subject, natsConfigured, natsConnected }: ProcessFacts): readonly Finding[] {
  if (!natsConfigured) return [];
  const about = { check: "nats", subject };
  if (natsConnected) return [fine(about.check, subject, "is connected")];
  const advice = "start NATS, or correct Events.NATS.URL and its credentials; its log has 'cannot connect to nats'";
  return [finding("problem", about, "is not connected: events wait in the log", advice)];
}
