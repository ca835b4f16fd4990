import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ExecutionReport } from "@rollcall/api/rollcall/health/v1/health_pb";
import { EndReason, type ExecutionObservation, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { EndReason as DomainEndReason, Observed } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import type { ReportedExecution } from "@rollcall/store";
import type { ReportPart } from "../replica/live-work.ts";

const OBSERVED: ReadonlyMap<ObservedState, Observed> = new Map([
  [ObservedState.STARTING, "STARTING"],
  [ObservedState.RUNNING, "RUNNING"],
  [ObservedState.READY, "READY"],
  [ObservedState.ENDED, "ENDED"],
]);

const ENDS: ReadonlyMap<EndReason, DomainEndReason> = new Map([
  [EndReason.EXITED, "EXITED"],
  [EndReason.OOM, "OOM"],
  [EndReason.STOPPED, "STOPPED"],
  [EndReason.START_FAILED, "START_FAILED"],
  [EndReason.CHECK_FAILED, "CHECK_FAILED"],
  [EndReason.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"],
  [EndReason.CONTROL_PLANE_LOST, "CONTROL_PLANE_LOST"],
  [EndReason.GONE, "GONE"],
]);

/** The format of the execution ids that schedulers create. It is checked because the id becomes a key in the store. */
const EXECUTION_ID = /^[0-9a-z]{1,64}$/;
/** The last millisecond that a timestamp in the store can hold: the end of the year 9999. */
const LAST_MS = Date.UTC(10_000, 0, 1) - 1;

/** Convert a part of a report. Throws INVALID_REQUEST. */
export function reportPart(report: ExecutionReport): ReportPart {
  const { number, whole, more, digest, observations } = report;
  if (number < 1n || number > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw refuseFields("INVALID_REQUEST", [
      { field: "execution_report.number", description: "reports are numbered from 1" },
    ]);
  }
  return {
    number: Number(number),
    isWhole: whole,
    hasMore: more,
    digest,
    executions: observations.map(reportedExecution),
  };
}

function reportedExecution(observation: ExecutionObservation, index: number): ReportedExecution {
  const { id, state, startTime, endTime, endReason, exitCode, signal, message, job, specDigest } = observation;
  const { ports, gpuUuids } = observation;
  const refuse = (field: string, description: string) =>
    refuseFields("INVALID_REQUEST", [{ field: `execution_report.observations[${index}].${field}`, description }]);
  const observed = OBSERVED.get(state);
  if (!EXECUTION_ID.test(id)) throw refuse("id", "not a valid execution id");
  if (observed === undefined) throw refuse("state", "not a valid execution state");
  if (Object.values(ports).some((port) => port < 1 || port > 65_535)) throw refuse("ports", "not a valid port number");
  // End reasons of newer releases become GONE.
  const end = observed === "ENDED" ? (ENDS.get(endReason) ?? "GONE") : null;
  return {
    id,
    observed,
    startedAtMs: startTime === undefined ? null : withinTime(timestampMs(startTime)),
    endedAtMs: endTime === undefined ? null : withinTime(timestampMs(endTime)),
    end,
    exitCode: end === null ? null : (exitCode ?? null),
    signal: end === null || signal === "" ? null : signal,
    message,
    job,
    specDigest,
    ...{ ports, gpuUuids },
  };
}

/** Limit a time from a node, whose clock can have any value, to the store's range. */
function withinTime(ms: number): number {
  return Math.min(Math.max(ms, 0), LAST_MS);
}
