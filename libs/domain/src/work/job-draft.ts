import type { JobType } from "./job-spec.ts";

/**
 * A submitted job before it is checked: the fields of the API's JobSpec as plain data.
 */
export interface JobDraft {
  readonly name: string;
  /** Who submitted it. */
  readonly owner: string;
  /** The type of the job; null if missing or unknown. */
  readonly type: JobType | null;
  /** Null if missing. */
  readonly count: number | null;
  readonly selector: string;
  readonly matchAgentLabels: boolean;
  readonly constraints: DraftConstraints;
  readonly resources: DraftResources;
  readonly task: DraftTask | null;
  readonly check: DraftCheck | null;
  readonly loss: {
    readonly lostAfterMs: number | null;
    readonly stopOnAgentAfterMs: number | null;
    readonly noReplace: boolean;
    readonly reconcile: "keep-replacement" | "keep-original" | null;
  };
  readonly retry: {
    readonly attempts: number | null;
    readonly backoff: "constant" | "exponential" | null;
    readonly intervalMs: number | null;
    readonly maxMs: number | null;
  };
  readonly update: {
    /** 0 if missing. */
    readonly maxParallel: number;
    readonly maxSurge: number;
    readonly minReadyMs: number | null;
    readonly readyDeadlineMs: number | null;
    readonly autoRevert: boolean;
  };
  readonly placement: {
    readonly strategy: "bin-pack" | "spread" | null;
    readonly maxPerNode: number;
  };
  readonly queueTimeoutMs: number | null;
  readonly maxRunTimeMs: number | null;
  /** The size of the spec in protobuf's binary encoding. */
  readonly sizeBytes: number;
}

/** Constraints as submitted. An empty string means that nothing is required. */
export interface DraftConstraints {
  readonly nodeId: string;
  readonly gpuModel: string;
  readonly gpuIndices: readonly number[];
  readonly minAgentVersion: string;
  readonly os: string;
  readonly architecture: string;
}

export interface DraftResources {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
  /** 0 if missing. */
  readonly pids: number;
  readonly ports: readonly { readonly label: string; readonly port: number }[];
}

/** What it runs. */
export type DraftTask = DraftProcess | DraftContainer;

interface TaskParts {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /**
   * The file name of each secret, keyed by the environment variable that gets the
   * secret.
   */
  readonly secretEnv: Readonly<Record<string, string>>;
  readonly user: string;
  readonly stop: { readonly signal: string; readonly graceMs: number | null };
  readonly output: { readonly maxFileBytes: number; readonly maxFiles: number };
}

export interface DraftProcess extends TaskParts {
  readonly kind: "process";
  readonly directory: string;
}

export interface DraftContainer extends TaskParts {
  readonly kind: "docker";
  readonly image: string;
}

export interface DraftCheck {
  readonly probe: DraftProbe | null;
  readonly intervalMs: number | null;
  readonly timeoutMs: number | null;
  readonly failures: number;
}

export type DraftProbe =
  | { readonly kind: "tcp"; readonly port: string }
  | { readonly kind: "http"; readonly port: string; readonly path: string }
  | { readonly kind: "command"; readonly command: readonly string[] };
