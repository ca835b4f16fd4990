/** How long, and where, executions of a job are wanted. */
export type JobType = "batch" | "service" | "ops" | "daemon";

export const JOB_TYPES: readonly JobType[] = ["batch", "service", "ops", "daemon"];

/** What one execution is given, and what is taken off its node while it may run. */
export interface Resources {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
  /** Ports by label; 0 for one that is chosen from the node's dynamic range. */
  readonly ports: Readonly<Record<string, number>>;
}

/** Conditions on a node beside its labels; null and empty for none. */
export interface NodeConstraints {
  /** The one node that may run it. */
  readonly nodeId: string | null;
  /** A part of the model of each granted GPU, in lower case. */
  readonly gpuModel: string | null;
  readonly gpuIndices: readonly number[];
  readonly minAgentVersion: string | null;
  readonly os: string | null;
  readonly architecture: string | null;
}

export interface LossPolicy {
  /** Time between the allowed reaction and the replacement. */
  readonly lostAfterMs: number;
  /** The machine stops the execution after so long without a control plane; null for never. */
  readonly stopOnAgentAfterMs: number | null;
  readonly replace: boolean;
  readonly reconcile: "keep-replacement" | "keep-original";
}

export interface RetryPolicy {
  /** Further executions after a failed one; null for no limit. */
  readonly attempts: number | null;
  readonly backoff: "constant" | "exponential";
  readonly intervalMs: number;
  readonly maxMs: number;
}

export interface UpdatePolicy {
  readonly maxParallel: number;
  /** Of those that are replaced at a time, how many run until their replacement is ready, where there is room. */
  readonly maxSurge: number;
  readonly minReadyMs: number;
  readonly readyDeadlineMs: number;
  /** Whether an update that halts is undone: the job is reverted to the last version that became ready. */
  readonly autoRevert: boolean;
}

/** What the scheduler has to know of a job's version. What runs is in the spec that nodes are given, by its digest. */
export interface JobSpec {
  readonly name: string;
  readonly type: JobType;
  /** Executions wanted; ignored for ops jobs and daemons. */
  readonly count: number;
  /** In Kubernetes' syntax; empty for any node. */
  readonly selector: string;
  /** Whether the selector sees the labels that nodes give to themselves. */
  readonly matchAgentLabels: boolean;
  readonly constraints: NodeConstraints;
  readonly resources: Resources;
  /** The executor that runs it. */
  readonly executor: "process" | "docker";
  /** The user and the directory that the job names; null where it leaves them to the agent. */
  readonly user: string | null;
  readonly directory: string | null;
  /** Whether a check tells when it is ready; without one it is as soon as it runs. */
  readonly checked: boolean;
  /** Who submitted the version, for example "token:ci". */
  readonly owner: string;
  /** Secrets of its node that it asks for, each once. */
  readonly secrets: readonly string[];
  readonly loss: LossPolicy;
  readonly retry: RetryPolicy;
  readonly update: UpdatePolicy;
  /**
   * Which of the nodes that fit. "even" is what a service has that names no strategy: the fewest executions of the job,
   * then nodes that were not disturbed recently, then the fullest.
   */
  readonly strategy: "bin-pack" | "spread" | "even";
  /** Executions of this job on one node at most; 0 for any number. */
  readonly maxPerNode: number;
  /** How long an execution may wait for a node; null for one that fits nowhere at once to fail at once. */
  readonly queueTimeoutMs: number | null;
  /** Time between being asked to stop and being killed. */
  readonly stopGraceMs: number;
}
