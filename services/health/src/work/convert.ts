import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ExecutionReport } from "@rollcall/api/rollcall/health/v1/health_pb";
import { EndReason, type ExecutionObservation, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { EndReason as DomainEndReason, Observed } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import type { ReportedExecution } from "@rollcall/store";
import type { ReportPart } from "./held-work.ts";

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

/** An execution's id as schedulers make them, and no other text: it becomes a key of the record. */
const EXECUTION_ID = /^[0-9a-z]{1,64}$/;
/** The last millisecond that a timestamp of the record can hold: the end of the year 9999. */
const LAST_MS = Date.UTC(10_000, 0, 1) - 1;

/** A part of a report as values. Throws INVALID_REQUEST. */
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
  if (!EXECUTION_ID.test(id)) throw refuse("id", "not the id of an execution");
  if (observed === undefined) throw refuse("state", "not a state of an execution");
  if (Object.values(ports).some((port) => port < 1 || port > 65_535)) throw refuse("ports", "not the number of a port");
  // An end that only a newer release knows is one whose way is not known.
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

/** A node's clock may say anything. */
function withinTime(ms: number): number {
  return Math.min(Math.max(ms, 0), LAST_MS);
}
