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
import type { KeepingRules } from "../execution/execution-state.ts";
import type { OutputRules } from "../output/output-plan.ts";

/** What is tried to see that an execution is ready. */
export type Probe =
  | { readonly kind: "tcp"; readonly port: string }
  | { readonly kind: "http"; readonly port: string; readonly path: string }
  | { readonly kind: "command"; readonly argv: readonly string[] };

/** What plans of all kinds say: nothing is absent any more. */
interface CommonPlan {
  readonly job: string;
  /** Who submitted the job; empty where the spec does not say. */
  readonly owner: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Names of files, by variable. */
  readonly secretEnv: Readonly<Record<string, string>>;
  /** Empty: the choice of the machine, or of the image. */
  readonly user: string;
  readonly millicores: number;
  readonly memoryBytes: number;
  /** Processes and threads at a time. */
  readonly pids: number;
  readonly probe: Probe | null;
  readonly probeTimeoutMs: number;
  readonly rules: KeepingRules;
  readonly output: OutputRules;
}

/** A spec of a process as the keeper works with it. */
export interface ProcessPlan extends CommonPlan {
  readonly kind: "process";
  /** Empty: the execution's own. */
  readonly directory: string;
}

/** A spec of a container as the keeper works with it. */
export interface ContainerPlan extends CommonPlan {
  readonly kind: "docker";
  readonly image: string;
}

/** A spec as the keeper works with it. */
export type ExecutionPlan = ProcessPlan | ContainerPlan;

/** A plan, or why the spec is none. */
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

/** The rules of an execution of which nothing is known but that it does not run. */
export const NO_RULES: KeepingRules = {
  stopSignal: "SIGTERM",
  graceMs: DEFAULTS.graceMs,
  maxRunMs: null,
  stopOnAgentAfterMs: null,
  check: null,
};

/** Read an encoded ExecutionSpec. What is beyond its limits is cut to them: the scheduler has refused it before. */
export function readSpec(bytes: Uint8Array): ReadSpec {
  let spec: ExecutionSpec;
  try {
    spec = fromBinary(ExecutionSpecSchema, bytes);
  } catch {
    return { ok: false, rules: NO_RULES, problem: "its spec cannot be decoded" };
  }
  const rules = rulesOf(spec);
  const { task, check, resources } = spec;
  if (task.case === undefined)
    return { ok: false, rules, problem: "the node has no executor for a spec without a task" };
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

/** What is absent, or 0, is the default. */
function bounded(value: number | undefined, otherwise: number, most: number): number {
  return value === undefined || value <= 0 ? otherwise : Math.min(most, value);
}
