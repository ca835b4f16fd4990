import { parseSelector } from "../labels/parse-selector.ts";
import { isNodeId, NODE_ID_RULE } from "../membership/node-id.ts";
import { parseVersion } from "./agent-version.ts";
import { checkTask, type JobViolation } from "./check-task.ts";
import type { DraftConstraints, DraftResources, JobDraft } from "./job-draft.ts";
import type { JobSpec, JobType, NodeConstraints, Resources } from "./job-spec.ts";

/** A valid job with warnings, or all violations of an invalid job. */
export type CheckedJob =
  | { readonly ok: true; readonly spec: JobSpec; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly violations: readonly JobViolation[] };

/** A stored job, as the current rules interpret it. */
export interface RecheckedJob {
  readonly spec: JobSpec;
  /** The rules that the job violates; empty unless an older release accepted more. */
  readonly violations: readonly JobViolation[];
}

/** Maximum number of executions per job. */
const MOST_JOB_EXECUTIONS = 100_000;
/**
 * Maximum size of a spec in protobuf's binary encoding. The size as JSON would depend on escaped quotes and line feeds.
 */
export const MOST_SPEC_BYTES = 65_536;

const MOST_PORTS = 32;
const MOST_GPUS = 64;
/** The highest limit of process ids on Linux. */
const MOST_PIDS = 4_194_304;
const MOST_MILLICORES = 4_000_000;
const MOST_MS = 366 * 86_400_000;
const HOUR_MS = 3_600_000;
const PORT_LABEL = /^[a-z][a-z0-9_]{0,31}$/;
const DEFAULT_ATTEMPTS: Readonly<Record<JobType, number | null>> = { batch: 3, service: null, daemon: null, ops: 0 };

/** Check a submitted job, and fill in defaults. For an invalid job, returns all its violations. */
export function checkJob(draft: JobDraft): CheckedJob {
  const violations = violationsOf(draft);
  if (violations.length > 0 || draft.type === null) return { ok: false, violations };
  const spec = toSpec(draft, draft.type);
  return { ok: true, spec, warnings: warningsOf(spec, draft) };
}

/**
 * Interpret a stored job. An older release may have checked it by other rules. Where possible, its task is kept as
 * submitted.
 *
 * @param type the stored type.
 */
export function recheckJob(draft: JobDraft, type: JobType): RecheckedJob {
  return { spec: toSpec(draft, type), violations: violationsOf(draft) };
}

function violationsOf(draft: JobDraft): readonly JobViolation[] {
  return [
    ...checkHead(draft),
    ...checkConstraints(draft.constraints, draft.resources.gpus),
    ...checkResources(draft.resources),
    ...checkTask(draft),
    ...checkPolicies(draft),
  ];
}

function checkHead({ name, type, count, selector, sizeBytes }: JobDraft): readonly JobViolation[] {
  const found: JobViolation[] = [];
  if (!isNodeId(name)) found.push({ field: "name", message: `a job's name is ${NODE_ID_RULE}` });
  if (type === null) found.push({ field: "type", message: "must be batch, service, ops or daemon" });
  if ((type === "ops" || type === "daemon") && count !== null) {
    found.push({ field: "count", message: `jobs of type ${type} run once on every matching node and take no count` });
  }
  if (count !== null && count > MOST_JOB_EXECUTIONS)
    found.push({ field: "count", message: `must be at most ${MOST_JOB_EXECUTIONS}` });
  const parsed = parseSelector(selector);
  if (!parsed.ok) found.push({ field: "selector", message: parsed.message });
  if (sizeBytes > MOST_SPEC_BYTES) {
    const message = `the job has ${sizeBytes} bytes as a protobuf message, the limit is ${MOST_SPEC_BYTES}; shorten it`;
    found.push({ field: "", message });
  }
  return found;
}

function checkConstraints(constraints: DraftConstraints, gpus: number): readonly JobViolation[] {
  const { nodeId, gpuModel, gpuIndices, minAgentVersion } = constraints;
  const found: JobViolation[] = [];
  if (nodeId !== "" && !isNodeId(nodeId)) {
    found.push({ field: "constraints.node", message: `a node id is ${NODE_ID_RULE}` });
  }
  if (gpuModel !== "" && gpus === 0) {
    found.push({ field: "constraints.gpu_model", message: "requires resources.gpus to be at least 1" });
  }
  if (gpuIndices.length > 0 && gpuIndices.length !== gpus) {
    found.push({
      field: "constraints.gpu_indices",
      message: `must have as many entries as resources.gpus, which is ${gpus}`,
    });
  }
  gpuIndices.forEach((gpu, place) => {
    if (gpuIndices.indexOf(gpu) === place) return;
    found.push({ field: `constraints.gpu_indices[${place}]`, message: `${gpu} is listed twice` });
  });
  if (minAgentVersion !== "" && parseVersion(minAgentVersion) === null) {
    found.push({ field: "constraints.min_agent_version", message: 'must be a version, for example "0.2.0"' });
  }
  return found;
}

function checkResources(resources: DraftResources): readonly JobViolation[] {
  const { millicores, memoryBytes, diskBytes, gpus, pids, ports } = resources;
  const found: JobViolation[] = [];
  if (millicores > MOST_MILLICORES) {
    found.push({ field: "resources.millicores", message: `must be at most ${MOST_MILLICORES}` });
  }
  if (!Number.isSafeInteger(memoryBytes)) found.push({ field: "resources.memory_bytes", message: "is too large" });
  if (!Number.isSafeInteger(diskBytes)) found.push({ field: "resources.disk_bytes", message: "is too large" });
  if (gpus > MOST_GPUS) found.push({ field: "resources.gpus", message: `must be at most ${MOST_GPUS}` });
  if (pids > MOST_PIDS) found.push({ field: "resources.pids", message: `must be at most ${MOST_PIDS}` });
  if (ports.length > MOST_PORTS) found.push({ field: "resources.ports", message: `must be at most ${MOST_PORTS}` });
  ports.forEach(({ label, port }, place) => {
    const field = `resources.ports[${place}]`;
    if (!PORT_LABEL.test(label)) {
      const message = "must be 1-32 characters of [a-z0-9_], starting with a letter";
      found.push({ field: `${field}.label`, message });
    } else if (ports.findIndex((other) => other.label === label) !== place) {
      found.push({ field: `${field}.label`, message: `${label} is listed twice` });
    }
    if (port > 65_535) found.push({ field: `${field}.port`, message: "must be at most 65535" });
    if (port !== 0 && ports.findIndex((other) => other.port === port) !== place) {
      found.push({ field: `${field}.port`, message: `${port} is listed twice` });
    }
  });
  return found;
}

function checkPolicies(draft: JobDraft): readonly JobViolation[] {
  const { loss, retry, update, type } = draft;
  const { intervalMs, maxMs } = { ...RETRY_TIMES, ...given(retry) };
  const found = [
    ...withinMs("loss.lost_after", loss.lostAfterMs, 0, MOST_MS),
    ...withinMs("loss.stop_on_agent_after", loss.stopOnAgentAfterMs, 1_000, MOST_MS),
    ...withinMs("retry.interval", retry.intervalMs, 100, MOST_MS),
    ...withinMs("retry.max", retry.maxMs, 100, MOST_MS),
    ...withinMs("update.min_ready_time", update.minReadyMs, 0, HOUR_MS),
    ...withinMs("update.ready_deadline", update.readyDeadlineMs, 1_000, MOST_MS),
    ...withinMs("queue_timeout", draft.queueTimeoutMs, 0, MOST_MS),
    ...withinMs("max_run_time", draft.maxRunTimeMs, 1_000, MOST_MS),
  ];
  if ((retry.attempts ?? 0) > 10_000) found.push({ field: "retry.attempts", message: "must be at most 10000" });
  if (intervalMs > maxMs) found.push({ field: "retry.max", message: "must not be less than retry.interval" });
  if (update.maxParallel > MOST_JOB_EXECUTIONS) {
    found.push({ field: "update.max_parallel", message: `must be at most ${MOST_JOB_EXECUTIONS}` });
  }
  if (update.maxSurge > Math.max(1, update.maxParallel)) {
    found.push({ field: "update.max_surge", message: "must not exceed update.max_parallel" });
  }
  if (update.maxSurge > 0 && type !== "service") {
    found.push({
      field: "update.max_surge",
      message: "is only for services: other jobs never run two executions of a replica at once",
    });
  }
  const { minReadyMs, readyDeadlineMs } = { ...UPDATE_TIMES, ...given(update) };
  if (readyDeadlineMs <= minReadyMs) {
    found.push({ field: "update.ready_deadline", message: "must exceed update.min_ready_time" });
  }
  if (draft.maxRunTimeMs !== null && (type === "service" || type === "daemon")) {
    found.push({
      field: "max_run_time",
      message: `is not allowed for jobs of type ${type}, which run until they are stopped`,
    });
  }
  if (type === "daemon" && draft.placement.maxPerNode > 1) {
    found.push({ field: "placement.max_per_node", message: "a daemon runs once on every matching node" });
  }
  return found;
}

function withinMs(field: string, valueMs: number | null, leastMs: number, mostMs: number): JobViolation[] {
  if (valueMs === null || (valueMs >= leastMs && valueMs <= mostMs)) return [];
  return [{ field, message: `must be from ${leastMs / 1_000} s to ${mostMs / 1_000} s` }];
}

const RETRY_TIMES = { intervalMs: 5_000, maxMs: 300_000 };
const UPDATE_TIMES = { minReadyMs: 10_000, readyDeadlineMs: 300_000 };
/** The default time that executions get to stop, in milliseconds. */
export const DEFAULT_STOP_GRACE_MS = 5_000;

/** Return only the values that are set, to spread them over defaults. */
function given<Value extends object>(value: Value): { [Key in keyof Value]?: NonNullable<Value[Key]> } {
  const entries = Object.entries(value).filter(([, one]) => one !== null && one !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof Value]?: NonNullable<Value[Key]> };
}

function toSpec(draft: JobDraft, type: JobType): JobSpec {
  const { task, loss, retry, update, placement } = draft;
  const perNode = type === "ops" || type === "daemon";
  const retryTimes = { ...RETRY_TIMES, ...given(retry) };
  const updateTimes = { ...UPDATE_TIMES, ...given(update) };
  return {
    name: draft.name,
    type,
    count: perNode ? 0 : (draft.count ?? 1),
    selector: draft.selector.trim(),
    matchAgentLabels: draft.matchAgentLabels,
    constraints: toConstraints(draft.constraints),
    resources: toResources(draft.resources),
    executor: task?.kind ?? "process",
    user: task?.kind === "process" && task.user !== "" ? task.user : null,
    directory: task?.kind === "process" && task.directory !== "" ? task.directory : null,
    checked: draft.check !== null,
    owner: draft.owner,
    secrets: [...new Set(Object.values(task?.secretEnv ?? {}))].sort(),
    loss: {
      lostAfterMs: loss.lostAfterMs ?? 0,
      stopOnAgentAfterMs: loss.stopOnAgentAfterMs,
      replace: !loss.noReplace,
      reconcile: loss.reconcile ?? "keep-replacement",
    },
    retry: {
      attempts: retry.attempts ?? DEFAULT_ATTEMPTS[type],
      backoff: retry.backoff ?? "exponential",
      intervalMs: retryTimes.intervalMs,
      maxMs: retryTimes.maxMs,
    },
    update: {
      maxParallel: Math.max(1, update.maxParallel),
      maxSurge: update.maxSurge,
      minReadyMs: updateTimes.minReadyMs,
      readyDeadlineMs: updateTimes.readyDeadlineMs,
      autoRevert: update.autoRevert,
    },
    strategy: placement.strategy ?? (type === "service" ? "even" : "bin-pack"),
    maxPerNode: perNode ? 1 : placement.maxPerNode,
    queueTimeoutMs: draft.queueTimeoutMs,
    stopGraceMs: task?.stop.graceMs ?? DEFAULT_STOP_GRACE_MS,
  };
}

function toConstraints(constraints: DraftConstraints): NodeConstraints {
  const orNull = (text: string) => (text === "" ? null : text);
  return {
    nodeId: orNull(constraints.nodeId),
    gpuModel: orNull(constraints.gpuModel.toLowerCase()),
    gpuIndices: constraints.gpuIndices,
    minAgentVersion: orNull(constraints.minAgentVersion),
    os: orNull(constraints.os),
    architecture: orNull(constraints.architecture),
  };
}

function toResources({ ports, pids: _pids, ...amounts }: DraftResources): Resources {
  return { ...amounts, ports: Object.fromEntries(ports.map(({ label, port }) => [label, port])) };
}

function warningsOf(spec: JobSpec, draft: JobDraft): readonly string[] {
  const { loss, type, resources } = spec;
  const warnings: string[] = [];
  if (loss.stopOnAgentAfterMs !== null) {
    const seconds = loss.stopOnAgentAfterMs / 1_000;
    warnings.push(`loss.stop_on_agent_after: this job stops when the control plane is unreachable for ${seconds} s`);
  }
  if (type === "service" && resources.millicores === 0 && resources.memoryBytes === 0) {
    warnings.push("resources: none are requested, so any number of executions can be placed on one node");
  }
  if (type === "service" && !spec.checked) {
    warnings.push("check: there is none, so an execution counts as ready as soon as it runs");
  }
  if (draft.task?.kind === "docker" && !draft.task.image.includes("@sha256:")) {
    warnings.push("docker.image: it has no digest, so nodes may run different images");
  }
  if (spec.matchAgentLabels && spec.selector !== "") {
    warnings.push("match_agent_labels: a node can match by setting labels on itself");
  }
  if (loss.reconcile === "keep-original" && (type === "ops" || type === "daemon")) {
    warnings.push(`loss.reconcile: jobs of type ${type} are not replaced on other nodes, so it has no effect`);
  }
  return warnings;
}
