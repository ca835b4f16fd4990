/** Determines on how many nodes a job runs, and whether it ends. */
export type JobType = "batch" | "service" | "ops" | "daemon";

export const JOB_TYPES: readonly JobType[] = ["batch", "service", "ops", "daemon"];

/** The resources of one execution. They are reserved on its node as long as the execution may run. */
export interface Resources {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
  /** Port numbers, keyed by label; 0 for a port from the node's dynamic range. */
  readonly ports: Readonly<Record<string, number>>;
}

/** Requirements on a node in addition to its labels; null or empty if there are none. */
export interface NodeConstraints {
  /** The only node that can run the job. */
  readonly nodeId: string | null;
  /** A part of the model name that each granted GPU must contain, in lower case. */
  readonly gpuModel: string | null;
  readonly gpuIndices: readonly number[];
  readonly minAgentVersion: string | null;
  readonly os: string | null;
  readonly architecture: string | null;
}

export interface LossPolicy {
  /** How long to wait, after the reaction is allowed, before replacing the execution. */
  readonly lostAfterMs: number;
  /**
   * How long the execution keeps running on a machine without a control plane before the machine stops it; null for
   * forever.
   */
  readonly stopOnAgentAfterMs: number | null;
  readonly replace: boolean;
  readonly reconcile: "keep-replacement" | "keep-original";
}

export interface RetryPolicy {
  /** Maximum number of executions that may follow a failed execution; null for no limit. */
  readonly attempts: number | null;
  readonly backoff: "constant" | "exponential";
  readonly intervalMs: number;
  readonly maxMs: number;
}

export interface UpdatePolicy {
  readonly maxParallel: number;
  /** Maximum number of executions that keep running until their replacements are ready, if there is room. */
  readonly maxSurge: number;
  readonly minReadyMs: number;
  readonly readyDeadlineMs: number;
  /** Whether to revert the job to the last version that became ready if an update halts. */
  readonly autoRevert: boolean;
}

/**
 * The part of a job version that the scheduler uses. The task is in the execution spec, which nodes receive and a
 * digest identifies.
 */
export interface JobSpec {
  readonly name: string;
  readonly type: JobType;
  /** How many executions are wanted; ignored for ops jobs and daemons. */
  readonly count: number;
  /** A label selector in the syntax of Kubernetes; empty for any node. */
  readonly selector: string;
  /** Whether the selector can use labels that nodes give themselves. */
  readonly matchAgentLabels: boolean;
  readonly constraints: NodeConstraints;
  readonly resources: Resources;
  /** The executor that runs the job. */
  readonly executor: "process" | "docker";
  /** The user and directory of the task; null if the agent chooses them. */
  readonly user: string | null;
  readonly directory: string | null;
  /** Whether a check determines when an execution is ready. Without a check it is ready as soon as it runs. */
  readonly checked: boolean;
  /** The caller that submitted the version, for example "token:ci". */
  readonly owner: string;
  /** The names of secrets that the job uses, without duplicates. */
  readonly secrets: readonly string[];
  readonly loss: LossPolicy;
  readonly retry: RetryPolicy;
  readonly update: UpdatePolicy;
  /**
   * How to choose among nodes that fit. "even", the default for services, prefers nodes with the fewest executions of
   * the job, then nodes without a recent disturbance, then the fullest node.
   */
  readonly strategy: "bin-pack" | "spread" | "even";
  /** Maximum number of executions of this job on one node; 0 for no limit. */
  readonly maxPerNode: number;
  /** How long an execution can wait for a node; null to fail immediately if no node could ever run it. */
  readonly queueTimeoutMs: number | null;
  /** How long an execution has to stop before it is killed. */
  readonly stopGraceMs: number;
}
