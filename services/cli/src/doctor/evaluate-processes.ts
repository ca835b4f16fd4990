import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ProcessFacts } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { counted } from "../output/text.ts";
import { formatDuration, formatExactDuration } from "../output/units.ts";
import { evaluateExpiry } from "./evaluate-address.ts";
import { type Finding, finding, fine, measured } from "./finding.ts";

const CLOCK_MS = { warning: 2_000, problem: 30_000 };
const LATENCY_MS = { warning: 20, problem: 200 };
const FEED_LAG_MS = { warning: 10_000, problem: 60_000 };
/** Limits for the time that a call waits. A call that has waited for 5 s is refused. */
const CALLS_WAIT_MS = { warning: 1_000, problem: 4_000 };
const FILES_SHARE = { warning: 0.8, problem: 0.95 };
/** Limits for the age of a process's report. A report is written every 15 s. */
const REPORT_AGE_MS = { warning: 60_000, problem: 600_000 };
const SERVICES = ["registry", "health", "admin", "scheduler"] as const;
const SYNC = "synchronize the clock with NTP (chrony, systemd-timesyncd) on that machine";

/** Evaluate what the processes of the control plane report about themselves. */
export function evaluateProcesses(processes: readonly ProcessFacts[], nowMs: number): readonly Finding[] {
  return [...evaluatePresence(processes), ...processes.flatMap((process) => evaluateProcess(process, nowMs))];
}

/** Compare the clock of the server that responded with this machine's. */
export function evaluateServerClock(aheadMs: number, uncertainMs: number): Finding {
  const about = { check: "clock", subject: "the server that answers" };
  const certainMs = Math.max(0, Math.abs(aheadMs) - uncertainMs);
  const found = `${clockText(aheadMs, certainMs)} of this machine`;
  return measured(about, certainMs, CLOCK_MS, { found, advice: SYNC.replace("that machine", "both machines") });
}

function evaluatePresence(processes: readonly ProcessFacts[]): readonly Finding[] {
  const runs = (service: string) =>
    processes.some((it) => it.service === "up" || it.service.split(",").includes(service));
  const missing = SERVICES.filter((service) => !runs(service));
  if (missing.length === 0)
    return [
      fine("processes", "control plane", `${counted(processes.length, "process is", "processes are")} reporting`),
    ];
  return missing.map((service) =>
    finding(
      "problem",
      { check: "processes", subject: service },
      "no process is reporting",
      `start \`rollcall serve ${service}\`; a process that has just started does not report yet`,
    ),
  );
}

function evaluateProcess(process: ProcessFacts, nowMs: number): readonly Finding[] {
  const { instance: subject, clockAhead, storeLatency, feedLag, callsWaiting, age } = process;
  const aheadMs = clockAhead === undefined ? 0 : durationMs(clockAhead);
  const latencyMs = storeLatency === undefined ? 0 : durationMs(storeLatency);
  const certainMs = Math.max(0, Math.abs(aheadMs) - latencyMs / 2);
  const lagMs = feedLag === undefined ? 0 : durationMs(feedLag);
  const ageMs = age === undefined ? 0 : durationMs(age);
  const waitingMs = callsWaiting === undefined ? 0 : durationMs(callsWaiting);
  const certificate = process.certificateExpireTime;
  return [
    measured({ check: "report", subject }, ageMs, REPORT_AGE_MS, {
      found: `reported ${formatDuration(ageMs)} ago`,
      advice: "check its log: it cannot write to Postgres, or it hangs",
    }),
    measured({ check: "clock", subject }, certainMs, CLOCK_MS, {
      found: `${clockText(aheadMs, certainMs)} of Postgres`,
      advice: SYNC,
    }),
    measured({ check: "store-latency", subject }, latencyMs, LATENCY_MS, {
      found: `gets a response from Postgres in ${formatExactDuration(latencyMs)}`,
      advice: "check the network between the two, and the load of Postgres",
    }),
    measured({ check: "log-lag", subject }, lagMs, FEED_LAG_MS, {
      found: `last caught up with the event log ${formatDuration(lagMs)} ago`,
      advice: "search its log for 'feed cannot read the log'",
    }),
    evaluateNotifications(process),
    measured({ check: "calls-wait", subject }, waitingMs, CALLS_WAIT_MS, {
      found:
        waitingMs === 0
          ? "no call waited for a connection"
          : `calls waited for a connection, for up to ${formatExactDuration(Math.round(waitingMs))}`,
      advice: "find slow queries in Postgres; if there are none, raise Database.PoolSize and max_connections",
    }),
    evaluateFiles(process),
    ...(certificate === undefined ? [] : [evaluateExpiry(subject, timestampMs(certificate), nowMs)]),
    ...evaluateNats(process),
  ];
}

function clockText(aheadMs: number, certainMs: number): string {
  if (certainMs < 1) return "agrees with the clock";
  return `is ${formatExactDuration(Math.round(certainMs))} ${aheadMs < 0 ? "behind" : "ahead of"} the clock`;
}

function evaluateNotifications({ instance: subject, lacksNotifications }: ProcessFacts): Finding {
  const about = { check: "notifications", subject };
  if (!lacksNotifications) return fine(about.check, subject, "arrive");
  const advice =
    "set Database.DirectURL to the address of Postgres itself and restart it; a pooler in transaction mode between " +
    "the two loses notifications";
  return finding("problem", about, "do not arrive from Postgres: it detects changes by polling, seconds late", advice);
}

function evaluateFiles({ instance: subject, openFiles, openFilesLimit }: ProcessFacts): Finding {
  const about = { check: "descriptors", subject };
  if (openFilesLimit === 0n || openFiles === 0)
    return fine(about.check, subject, "are not limited, or their limit is unknown");
  const found = `${openFiles} of ${openFilesLimit} are used`;
  const advice = "raise ulimit -n (LimitNOFILE= of the unit) and restart it, or lower Listen.MaxConnections";
  return measured(about, openFiles / Number(openFilesLimit), FILES_SHARE, { found, advice });
}

function evaluateNats({ instance: subject, natsConfigured, natsConnected }: ProcessFacts): readonly Finding[] {
  if (!natsConfigured) return [];
  const about = { check: "nats", subject };
  if (natsConnected) return [fine(about.check, subject, "is connected")];
  const advice = "start NATS, or correct Events.NATS.URL and its credentials; its log has 'cannot connect to nats'";
  return [finding("problem", about, "is not connected: events wait in the log", advice)];
}
