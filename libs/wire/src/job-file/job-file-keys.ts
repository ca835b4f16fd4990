import { Backoff, JobType, PlacementStrategy, ReconcilePolicy } from "@rollcall/api/rollcall/work/v1/work_pb";

/** How a value of the job file is written. */
export type ValueKind =
  /** A string. Numbers and booleans are taken as written. */
  | { readonly kind: "text" }
  /** true or false. `inverted` means that the API's field has the opposite meaning. */
  | { readonly kind: "flag"; readonly inverted?: boolean }
  | { readonly kind: "whole"; readonly most: number }
  /** A number of processors, in steps of a thousandth: 0.5. */
  | { readonly kind: "cores" }
  /** Bytes: 1024, 256Mi, 1.5G. */
  | { readonly kind: "bytes" }
  /** A duration: 500ms, 5s, 1m, 2h. */
  | { readonly kind: "duration" }
  /** One of these words, mapped to its value in the API. */
  | { readonly kind: "word"; readonly words: Readonly<Record<string, number>> }
  | { readonly kind: "texts" }
  | { readonly kind: "wholes"; readonly most: number }
  /** A map of strings. */
  | { readonly kind: "map" }
  /** Labels with `dynamic` or a port number. */
  | { readonly kind: "ports" }
  | { readonly kind: "block"; readonly keys: readonly JobFileKey[] };

/** A key of the job file. */
export interface JobFileKey {
  readonly name: string;
  /** The field of the API, as in its schema. */
  readonly field: string;
  readonly value: ValueKind;
  /** Whether the block must contain it. */
  readonly required?: boolean;
  /** A block can contain at most one of the keys with the same choice. */
  readonly choice?: string;
}

const TEXT = { kind: "text" } as const;
const TEXTS = { kind: "texts" } as const;
const MAP = { kind: "map" } as const;
const BYTES = { kind: "bytes" } as const;
const DURATION = { kind: "duration" } as const;
const MOST_UINT32 = 4_294_967_295;
const whole = (most = MOST_UINT32) => ({ kind: "whole", most }) as const;
const block = (keys: readonly JobFileKey[]) => ({ kind: "block", keys }) as const;

const STOP = block([
  { name: "signal", field: "signal", value: TEXT },
  { name: "grace", field: "grace", value: DURATION },
]);

const OUTPUT = block([
  { name: "maxFileSize", field: "max_file_bytes", value: BYTES },
  { name: "maxFiles", field: "max_files", value: whole() },
]);

const PROCESS = block([
  { name: "command", field: "command", value: TEXTS, required: true },
  { name: "env", field: "env", value: MAP },
  { name: "secretEnv", field: "secret_env", value: MAP },
  { name: "directory", field: "directory", value: TEXT },
  { name: "user", field: "user", value: TEXT },
  { name: "stop", field: "stop", value: STOP },
  { name: "output", field: "output", value: OUTPUT },
]);

const DOCKER = block([
  { name: "image", field: "image", value: TEXT, required: true },
  { name: "command", field: "command", value: TEXTS },
  { name: "env", field: "env", value: MAP },
  { name: "secretEnv", field: "secret_env", value: MAP },
  { name: "user", field: "user", value: TEXT },
  { name: "stop", field: "stop", value: STOP },
  { name: "output", field: "output", value: OUTPUT },
]);

const CONSTRAINTS = block([
  { name: "node", field: "node", value: TEXT },
  { name: "gpuModel", field: "gpu_model", value: TEXT },
  { name: "gpuIndices", field: "gpu_indices", value: { kind: "wholes", most: MOST_UINT32 } },
  { name: "minAgentVersion", field: "min_agent_version", value: TEXT },
  { name: "os", field: "os", value: TEXT },
  { name: "architecture", field: "architecture", value: TEXT },
]);

const RESOURCES = block([
  { name: "cores", field: "millicores", value: { kind: "cores" } },
  { name: "memory", field: "memory_bytes", value: BYTES },
  { name: "disk", field: "disk_bytes", value: BYTES },
  { name: "gpus", field: "gpus", value: whole(64) },
  { name: "pids", field: "pids", value: whole(4_194_304) },
  { name: "ports", field: "ports", value: { kind: "ports" } },
]);

const PROBE = "tcp, http or command";

const CHECK = block([
  {
    name: "tcp",
    field: "tcp",
    value: block([{ name: "port", field: "port", value: TEXT, required: true }]),
    choice: PROBE,
  },
  {
    name: "http",
    field: "http",
    value: block([
      { name: "port", field: "port", value: TEXT, required: true },
      { name: "path", field: "path", value: TEXT },
    ]),
    choice: PROBE,
  },
  { name: "command", field: "command.command", value: TEXTS, choice: PROBE },
  { name: "interval", field: "interval", value: DURATION },
  { name: "timeout", field: "timeout", value: DURATION },
  { name: "failures", field: "failures", value: whole() },
]);

const LOSS = block([
  { name: "lostAfter", field: "lost_after", value: DURATION },
  { name: "stopOnAgentAfter", field: "stop_on_agent_after", value: DURATION },
  { name: "replace", field: "no_replace", value: { kind: "flag", inverted: true } },
  {
    name: "reconcile",
    field: "reconcile",
    value: {
      kind: "word",
      words: {
        "keep-replacement": ReconcilePolicy.KEEP_REPLACEMENT,
        "keep-original": ReconcilePolicy.KEEP_ORIGINAL,
      },
    },
  },
]);

const RETRY = block([
  { name: "attempts", field: "attempts", value: whole(10_000) },
  {
    name: "backoff",
    field: "backoff",
    value: { kind: "word", words: { constant: Backoff.CONSTANT, exponential: Backoff.EXPONENTIAL } },
  },
  { name: "interval", field: "interval", value: DURATION },
  { name: "max", field: "max", value: DURATION },
]);

const UPDATE = block([
  { name: "maxParallel", field: "max_parallel", value: whole() },
  { name: "maxSurge", field: "max_surge", value: whole() },
  { name: "minReadyTime", field: "min_ready_time", value: DURATION },
  { name: "readyDeadline", field: "ready_deadline", value: DURATION },
  { name: "autoRevert", field: "auto_revert", value: { kind: "flag" } },
]);

const PLACEMENT = block([
  {
    name: "strategy",
    field: "strategy",
    value: { kind: "word", words: { "bin-pack": PlacementStrategy.BIN_PACK, spread: PlacementStrategy.SPREAD } },
  },
  { name: "maxPerNode", field: "max_per_node", value: whole() },
]);

const TASK = "process or docker";

/** The words of `type`. */
const JOB_TYPE_WORDS: Readonly<Record<string, JobType>> = {
  batch: JobType.BATCH,
  service: JobType.SERVICE,
  ops: JobType.OPS,
  daemon: JobType.DAEMON,
};

/** Every key of the job file, in the order of its reference. */
export const JOB_FILE_KEYS: readonly JobFileKey[] = [
  { name: "name", field: "name", value: TEXT, required: true },
  { name: "type", field: "type", value: { kind: "word", words: JOB_TYPE_WORDS }, required: true },
  { name: "count", field: "count", value: whole() },
  { name: "selector", field: "selector", value: TEXT },
  { name: "matchAgentLabels", field: "match_agent_labels", value: { kind: "flag" } },
  { name: "constraints", field: "constraints", value: CONSTRAINTS },
  { name: "resources", field: "resources", value: RESOURCES },
  { name: "process", field: "process", value: PROCESS, choice: TASK },
  { name: "docker", field: "docker", value: DOCKER, choice: TASK },
  { name: "check", field: "check", value: CHECK },
  { name: "loss", field: "loss", value: LOSS },
  { name: "retry", field: "retry", value: RETRY },
  { name: "update", field: "update", value: UPDATE },
  { name: "placement", field: "placement", value: PLACEMENT },
  { name: "queueTimeout", field: "queue_timeout", value: DURATION },
  { name: "maxRunTime", field: "max_run_time", value: DURATION },
  { name: "annotations", field: "annotations", value: MAP },
];
