import type { JobSpec } from "../work/job-spec.ts";
import type { WorkNode } from "../work/work-node.ts";

/** Create a node that can take work. Without changes, it has 4 cores and 8 GiB. */
export function workNode(id: string, part: Partial<WorkNode> = {}): WorkNode {
  return {
    id,
    type: "COMPUTE",
    membership: "APPROVED",
    connection: "CONNECTED",
    health: "HEALTHY",
    holds: [],
    conditionSinceMs: null,
    disturbedUntilMs: null,
    unknown: [],
    reactionAllowed: false,
    labels: new Map(),
    grantedLabels: new Map(),
    os: "linux",
    architecture: "x64",
    agentVersion: "0.2.0",
    capacity: {
      executors: ["process"],
      millicores: 4_000,
      memoryBytes: 8 * 2 ** 30,
      diskBytes: 100 * 2 ** 30,
      portMin: 20_000,
      portMax: 20_099,
      limits: ["cpu", "memory"],
      users: ["web"],
      directories: ["/srv"],
      lacks: [],
      secrets: [],
    },
    gpus: [],
    ...part,
  };
}

/** Create a job of type service. Without changes, it has one execution with 1 core and 1 GiB. */
export function jobSpec(part: Partial<JobSpec> = {}): JobSpec {
  return {
    name: "web",
    type: "service",
    count: 1,
    selector: "",
    matchAgentLabels: false,
    constraints: { nodeId: null, gpuModel: null, gpuIndices: [], minAgentVersion: null, os: null, architecture: null },
    resources: { millicores: 1_000, memoryBytes: 2 ** 30, diskBytes: 0, gpus: 0, ports: {} },
    executor: "process",
    user: null,
    directory: null,
    checked: true,
    owner: "token:ci",
    secrets: [],
    loss: { lostAfterMs: 0, stopOnAgentAfterMs: null, replace: true, reconcile: "keep-replacement" },
    retry: { attempts: null, backoff: "exponential", intervalMs: 5_000, maxMs: 300_000 },
    update: { maxParallel: 1, maxSurge: 0, minReadyMs: 10_000, readyDeadlineMs: 300_000, autoRevert: false },
    strategy: "bin-pack",
    maxPerNode: 0,
    queueTimeoutMs: null,
    stopGraceMs: 5_000,
    ...part,
  };
}
