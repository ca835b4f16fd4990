import { constants } from "node:os";
import { fromBinary } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  type Check,
  type ExecutionSpec,
  ExecutionSpecSchema,
  type ProcessTask,
  type StopPolicy,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import type { OutputRules } from "../output/output-plan.ts";
import type { KeepingRules } from "../state/execution-state.ts";

/** How to check whether an execution is ready. */
export type Probe =
  | { readonly kind: "tcp"; readonly port: string }
  | { readonly kind: "http"; readonly port: string; readonly path: string }
  | { readonly kind: "command"; readonly argv: readonly string[] };

/** The fields that plans of all kinds share. All of them have a value. */
interface CommonPlan {
  readonly job: string;
  /** The user who submitted the job; empty if the spec does not name one. */
  readonly owner: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The secrets' file names, keyed by variable. */
  readonly secretEnv: Readonly<Record<string, string>>;
  /** The user to run as. If empty, the machine or the image chooses. */
  readonly user: string;
  readonly millicores: number;
  readonly memoryBytes: number;
  /** The maximum number of processes and threads. */
  readonly pids: number;
  readonly probe: Probe | null;
  readonly probeTimeoutMs: number;
  readonly rules: KeepingRules;
  readonly output: OutputRules;
}

/** A process spec as the keeper uses it. */
export interface ProcessPlan extends CommonPlan {
  readonly kind: "process";
  /** The working directory; if empty, the execution's own directory. */
  readonly directory: string;
}

/** A container spec as the keeper uses it. */
export interface ContainerPlan extends CommonPlan {
  readonly kind: "docker";
  readonly image: string;
}

/** A spec as the keeper uses it. */
export type ExecutionPlan = ProcessPlan | ContainerPlan;

/** A plan, or why the spec is invalid. */
export type ReadSpec =
  | { readonly ok: true; readonly plan: ExecutionPlan }
  | { readonly ok: false; readonly rules: KeepingRules; readonly problem: string };

const DEFAULTS = {
  graceMs: 5_000,
  intervalMs: 10_000,
  timeoutMs: 2_000,
  failures: 3,
  readyMs: 300_000,
  fileBytes: 10_485_760,
  files: 3,
  pids: 4_096,
};
const MOST = {
  graceMs: 3_600_000,
  intervalMs: 3_600_000,
  failures: 1_000,
  readyMs: 366 * 86_400_000,
  fileBytes: 1_073_741_824,
  files: 20,
  pids: 4_194_304,
};
const LEAST_FILE_BYTES = 1_024;

/** The rules of an execution that never runs. */
export const NO_RULES: KeepingRules = {
  stopSignal: "SIGTERM",
  graceMs: DEFAULTS.graceMs,
  maxRunMs: null,
  stopOnAgentAfterMs: null,
  check: null,
};

/**
 * Parse an encoded ExecutionSpec. Values above a limit are reduced to it; the scheduler refuses such a spec anyway.
 */
export function readSpec(bytes: Uint8Array): ReadSpec {
  let spec: ExecutionSpec;
  try {
    spec = fromBinary(ExecutionSpecSchema, bytes);
  } catch {
    return { ok: false, rules: NO_RULES, problem: "its spec cannot be decoded" };
  }
  const rules = rulesOf(spec);
  const { task, check, resources } = spec;
  if (task.case === undefined) return { ok: false, rules, problem: "its spec has no task that this node knows" };
  const { output } = task.value;
  const common: CommonPlan = {
    job: spec.job,
    owner: spec.owner,
    argv: task.value.command,
    env: task.value.env,
    secretEnv: task.value.secretEnv,
    user: task.value.user,
    millicores: resources?.millicores ?? 0,
    memoryBytes: Number(resources?.memoryBytes ?? 0n),
    pids: bounded(resources?.pids, DEFAULTS.pids, MOST.pids),
    probe: probeOf(check),
    probeTimeoutMs: bounded(check?.timeout && durationMs(check.timeout), DEFAULTS.timeoutMs, MOST.intervalMs),
    rules,
    output: {
      maxFileBytes: Math.max(
        LEAST_FILE_BYTES,
        bounded(Number(output?.maxFileBytes ?? 0n), DEFAULTS.fileBytes, MOST.fileBytes),
      ),
      maxFiles: bounded(output?.maxFiles, DEFAULTS.files, MOST.files),
    },
  };
  switch (task.case) {
    case "process":
      if (common.argv.length === 0) return { ok: false, rules, problem: "its command is empty" };
      return { ok: true, plan: { kind: "process", directory: task.value.directory, ...common } };
    case "docker":
      if (task.value.image === "") return { ok: false, rules, problem: "its image has no name" };
      return { ok: true, plan: { kind: "docker", image: task.value.image, ...common } };
  }
}

function rulesOf(spec: ExecutionSpec): KeepingRules {
  const { check, maxRunTime, stopOnAgentAfter, readyDeadline } = spec;
  const stop: Partial<Pick<ProcessTask, "stop">> = spec.task.value ?? {};
  return {
    ...stopOf(stop.stop),
    maxRunMs: maxRunTime === undefined ? null : durationMs(maxRunTime),
    stopOnAgentAfterMs: stopOnAgentAfter === undefined ? null : durationMs(stopOnAgentAfter),
    check:
      probeOf(check) === null
        ? null
        : {
            intervalMs: bounded(check?.interval && durationMs(check.interval), DEFAULTS.intervalMs, MOST.intervalMs),
            failures: bounded(check?.failures, DEFAULTS.failures, MOST.failures),
            readyWithinMs: bounded(readyDeadline && durationMs(readyDeadline), DEFAULTS.readyMs, MOST.readyMs),
          },
  };
}

function stopOf(stop: StopPolicy | undefined): Pick<KeepingRules, "stopSignal" | "graceMs"> {
  const signal = stop?.signal ?? "";
  const isKnown = Object.hasOwn(constants.signals, signal);
  const graceMs = stop?.grace === undefined ? DEFAULTS.graceMs : durationMs(stop.grace);
  return { stopSignal: isKnown ? signal : "SIGTERM", graceMs: Math.max(0, Math.min(graceMs, MOST.graceMs)) };
}

function probeOf(check: Check | undefined): Probe | null {
  switch (check?.probe.case) {
    case "tcp":
      return { kind: "tcp", port: check.probe.value.port };
    case "http":
      return { kind: "http", port: check.probe.value.port, path: check.probe.value.path || "/" };
    case "command":
      return { kind: "command", argv: check.probe.value.command };
    case undefined:
      return null;
  }
}

/** An absent value or 0 means the default. */
function bounded(value: number | undefined, otherwise: number, most: number): number {
  return value === undefined || value <= 0 ? otherwise : Math.min(most, value);
}
