import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { HeartbeatResponseSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ReadExecutionLogRequest } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { DesiredState, ExecutionReferenceSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Desired } from "@rollcall/domain";
import type { WorkReference } from "@rollcall/store";

/** Which part of an execution's output to read; see ReadExecutionLogRequest. */
export type LogQuery = Omit<ReadExecutionLogRequest, "$typeName" | "$unknown">;

/** A frame about work, to an agent. */
export type WorkFrame =
  | {
      readonly kind: "executions";
      readonly logId: string;
      readonly generation: bigint;
      readonly isWhole: boolean;
      /** Whether more parts of the same list follow. */
      readonly hasMore: boolean;
      readonly isReportWanted: boolean;
      readonly references: readonly WorkReference[];
    }
  /** The spec that the agent requested; empty when the store has none. */
  | { readonly kind: "spec"; readonly digest: Uint8Array; readonly spec: Uint8Array }
  /** A request to read an execution's output. The agent opens a call that sends it. */
  | ({ readonly kind: "log-request"; readonly token: Uint8Array } & LogQuery)
  /** Acknowledges that all reports up to this number are in the store. */
  | { readonly kind: "report-ack"; readonly number: bigint };

type Frame = MessageInitShape<typeof HeartbeatResponseSchema>["frame"] & object;

const DESIRED: Readonly<Record<Desired, DesiredState>> = {
  RUN: DesiredState.RUN,
  STOP: DesiredState.STOP,
  FORGET: DesiredState.FORGET,
};

/** Convert a frame to its message. */
export function workFrameToProto(frame: WorkFrame): Frame {
  switch (frame.kind) {
    case "executions": {
      const { logId, generation, isWhole: whole, hasMore: more, isReportWanted: reportWanted } = frame;
      const references = frame.references.map(toReference);
      return { case: "executions", value: { logId, generation, whole, more, reportWanted, references } };
    }
    case "spec":
      return { case: "spec", value: { digest: new Uint8Array(frame.digest), spec: new Uint8Array(frame.spec) } };
    case "log-request": {
      const { kind: _, token, ...query } = frame;
      return { case: "logRequest", value: { ...query, token: new Uint8Array(token) } };
    }
    case "report-ack":
      return { case: "reportAck", value: { number: frame.number } };
  }
}

function toReference({ id, desired, specDigest, index, ports, gpuUuids, reported }: WorkReference) {
  return create(ExecutionReferenceSchema, {
    id,
    desired: DESIRED[desired],
    specDigest: new Uint8Array(specDigest),
    index,
    ports,
    gpuUuids: [...gpuUuids],
    reported,
  });
}
