import { toBinary } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
  Backoff,
  type Check,
  type JobSpec,
  JobSpecSchema,
  JobType,
  type OutputPolicy,
  PlacementStrategy,
  ReconcilePolicy,
  type StopPolicy,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import type { JobType as DomainJobType, DraftCheck, DraftTask, JobDraft } from "@rollcall/domain";

/** Convert a submitted job to the form that the rules for jobs expect. */
export function toJobDraft(spec: JobSpec, owner: string): JobDraft {
  const { constraints, resources, loss, retry, update, placement } = spec;
  return {
    name: spec.name,
    owner,
    type: jobTypeFromProto(spec.type),
    count: spec.count ?? null,
    selector: spec.selector,
    matchAgentLabels: spec.matchAgentLabels,
    constraints: {
      nodeId: constraints?.node ?? "",
      gpuModel: constraints?.gpuModel ?? "",
      gpuIndices: constraints?.gpuIndices ?? [],
      minAgentVersion: constraints?.minAgentVersion ?? "",
      os: constraints?.os ?? "",
      architecture: constraints?.architecture ?? "",
    },
    resources: {
      millicores: resources?.millicores ?? 0,
      memoryBytes: Number(resources?.memoryBytes ?? 0n),
      diskBytes: Number(resources?.diskBytes ?? 0n),
      gpus: resources?.gpus ?? 0,
      pids: resources?.pids ?? 0,
      ports: (resources?.ports ?? []).map(({ label, port }) => ({ label, port })),
    },
    task: toTask(spec),
    check: spec.check === undefined ? null : toCheck(spec.check),
    loss: {
      lostAfterMs: toMs(loss?.lostAfter),
      stopOnAgentAfterMs: toMs(loss?.stopOnAgentAfter),
      noReplace: loss?.noReplace ?? false,
      reconcile: RECONCILE[loss?.reconcile ?? ReconcilePolicy.UNSPECIFIED] ?? null,
    },
    retry: {
      attempts: retry?.attempts ?? null,
      backoff: BACKOFF[retry?.backoff ?? Backoff.UNSPECIFIED] ?? null,
      intervalMs: toMs(retry?.interval),
      maxMs: toMs(retry?.max),
    },
    update: {
      maxParallel: update?.maxParallel ?? 0,
      maxSurge: update?.maxSurge ?? 0,
      minReadyMs: toMs(update?.minReadyTime),
      readyDeadlineMs: toMs(update?.readyDeadline),
      autoRevert: update?.autoRevert ?? false,
    },
    placement: {
      strategy: STRATEGY[placement?.strategy ?? PlacementStrategy.UNSPECIFIED] ?? null,
      maxPerNode: placement?.maxPerNode ?? 0,
    },
    queueTimeoutMs: toMs(spec.queueTimeout),
    maxRunTimeMs: toMs(spec.maxRunTime),
    sizeBytes: toBinary(JobSpecSchema, spec).length,
  };
}

/** The type of a job; null if it is missing or unknown. */
export function jobTypeFromProto(type: JobType): DomainJobType | null {
  switch (type) {
    case JobType.BATCH:
      return "batch";
    case JobType.SERVICE:
      return "service";
    case JobType.OPS:
      return "ops";
    case JobType.DAEMON:
      return "daemon";
    default:
      return null;
  }
}

const RECONCILE: Readonly<Record<number, "keep-replacement" | "keep-original">> = {
  [ReconcilePolicy.KEEP_REPLACEMENT]: "keep-replacement",
  [ReconcilePolicy.KEEP_ORIGINAL]: "keep-original",
};
const BACKOFF: Readonly<Record<number, "constant" | "exponential">> = {
  [Backoff.CONSTANT]: "constant",
  [Backoff.EXPONENTIAL]: "exponential",
};
const STRATEGY: Readonly<Record<number, "bin-pack" | "spread">> = {
  [PlacementStrategy.BIN_PACK]: "bin-pack",
  [PlacementStrategy.SPREAD]: "spread",
};

function toTask({ task }: JobSpec): DraftTask | null {
  switch (task.case) {
    case "process": {
      const { command, env, secretEnv, user, directory, stop, output } = task.value;
      const parts = { command, env, secretEnv, user, stop: toStop(stop), output: toOutput(output) };
      return { kind: "process", directory, ...parts };
    }
    case "docker": {
      const { command, env, secretEnv, user, image, stop, output } = task.value;
      const parts = { command, env, secretEnv, user, stop: toStop(stop), output: toOutput(output) };
      return { kind: "docker", image, ...parts };
    }
    default:
      return null;
  }
}

function toStop(stop: StopPolicy | undefined): DraftTask["stop"] {
  return { signal: stop?.signal ?? "", graceMs: toMs(stop?.grace) };
}

function toOutput(output: OutputPolicy | undefined): DraftTask["output"] {
  return { maxFileBytes: Number(output?.maxFileBytes ?? 0n), maxFiles: output?.maxFiles ?? 0 };
}

function toCheck({ probe, interval, timeout, failures }: Check): DraftCheck {
  return { probe: toProbe(probe), intervalMs: toMs(interval), timeoutMs: toMs(timeout), failures };
}

function toProbe(probe: Check["probe"]): DraftCheck["probe"] {
  switch (probe.case) {
    case "tcp":
      return { kind: "tcp", port: probe.value.port };
    case "http":
      return { kind: "http", port: probe.value.port, path: probe.value.path };
    case "command":
      return { kind: "command", command: probe.value.command };
    default:
      return null;
  }
}

function toMs(duration: Duration | undefined): number | null {
  return duration === undefined ? null : durationMs(duration);
}
