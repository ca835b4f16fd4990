import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type LiveExecution, LiveExecutionSchema } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import {
  EndReason,
  type ExecutionObservationSchema,
  type ExecutionReference,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Execution, ExecutionIdentity } from "../journal/execution-entry.ts";
import type { EndCause, Phase } from "../state/execution-state.ts";

const MOST_MESSAGE = 512;

/** Convert an execution for the agent. */
export function toKept({ identity, state, logId, forgottenWallMs }: Execution): LiveExecution {
  const { phase, startedWallMs } = state;
  const observation: MessageInitShape<typeof ExecutionObservationSchema> = {
    id: identity.id,
    state: observedState(phase),
    change: BigInt(state.change),
    message: [state.message, state.about ?? ""]
      .filter((one) => one !== "")
      .join("; ")
      .slice(0, MOST_MESSAGE),
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
  return create(LiveExecutionSchema, { observation, logId, forgotten: forgottenWallMs !== null });
}

/** Convert an ExecutionReference to an ExecutionIdentity. */
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
