import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type KeptExecution, KeptExecutionSchema } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import {
  EndReason,
  type ExecutionObservationSchema,
  type ExecutionReference,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import type { EndCause, Phase } from "../execution/execution-state.ts";
import type { ExecutionIdentity, ExecutionRecord } from "../journal/execution-record.ts";

/** What is said of an execution. */
export function toKept({ identity, state, logId, forgottenWallMs }: ExecutionRecord): KeptExecution {
  const { phase, startedWallMs } = state;
  const observation: MessageInitShape<typeof ExecutionObservationSchema> = {
    id: identity.id,
    state: observedState(phase),
    change: BigInt(state.change),
    message: state.message,
    job: identity.job,
    specDigest: Buffer.from(identity.specDigest, "hex"),
    ports: identity.ports,
    gpuUuids: [...identity.gpuUuids],
    ...(startedWallMs !== null && { startTime: timestampFromMs(startedWallMs) }),
    ...(phase.kind === "ended" && {
      endTime: timestampFromMs(phase.wallMs),
      endReason: END_REASONS[phase.cause],
      signal: phase.signal ?? "",
      ...(phase.code !== null && { exitCode: phase.code }),
    }),
  };
  return create(KeptExecutionSchema, { observation, logId, forgotten: forgottenWallMs !== null });
}

/** Which execution a reference names. */
export function toIdentity(
  reference: ExecutionReference | undefined,
  of: { readonly job: string; readonly nodeId: string; readonly spec: Uint8Array },
): ExecutionIdentity {
  return {
    id: reference?.id ?? "",
    job: of.job,
    nodeId: of.nodeId,
    index: reference?.index ?? 0,
    ports: reference?.ports ?? {},
    gpuUuids: reference?.gpuUuids ?? [],
    specDigest: Buffer.from(reference?.specDigest ?? []).toString("hex"),
    spec: Buffer.from(of.spec).toString("base64"),
  };
}

function observedState(phase: Phase): ObservedState {
  switch (phase.kind) {
    case "starting":
      return ObservedState.STARTING;
    case "running":
      return phase.isReady ? ObservedState.READY : ObservedState.RUNNING;
    case "stopping":
      return ObservedState.RUNNING;
    case "ended":
      return ObservedState.ENDED;
  }
}

const END_REASONS: Readonly<Record<EndCause, EndReason>> = {
  EXITED: EndReason.EXITED,
  OOM: EndReason.OOM,
  STOPPED: EndReason.STOPPED,
  START_FAILED: EndReason.START_FAILED,
  CHECK_FAILED: EndReason.CHECK_FAILED,
  DEADLINE_EXCEEDED: EndReason.DEADLINE_EXCEEDED,
  CONTROL_PLANE_LOST: EndReason.CONTROL_PLANE_LOST,
  GONE: EndReason.GONE,
};
