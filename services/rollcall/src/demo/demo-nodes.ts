/** A machine of the demo. */
export interface DemoNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The GPUs that the machine pretends to have. */
  readonly gpus?: { readonly model: string; readonly count: number; readonly memoryMib: number };
  /** Whether the machine waits for an operator's approval. */
  readonly isPending?: boolean;
}

/** The fleet of the demo: two zones, two machines with GPUs, and one machine that waits for its approval. */
export const DEMO_NODES: readonly DemoNode[] = [
  { name: "web-1", labels: { zone: "a", role: "web" } },
  { name: "web-2", labels: { zone: "b", role: "web" } },
  {
    name: "gpu-1",
    labels: { zone: "a", role: "gpu" },
    gpus: { model: "NVIDIA H100 80GB HBM3", count: 4, memoryMib: 81_559 },
  },
  { name: "gpu-2", labels: { zone: "b", role: "gpu" }, gpus: { model: "NVIDIA L4", count: 2, memoryMib: 23_034 } },
  { name: "edge-1", labels: { zone: "edge", role: "edge" }, isPending: true },
];

/** Settings of the control plane with which the demo shows within seconds what takes a minute by default. */
export const DEMO_SETTINGS: readonly string[] = [
  "Orchestrator.NodeManager.ManualApproval=true",
  "Orchestrator.NodeManager.DisconnectTimeout=10s",
  "Orchestrator.NodeManager.UnknownTimeout=60s",
  "Compute.Heartbeat.Interval=1s",
];

/** How long a silent node of the demo stays HEALTHY, as text. */
export const DEMO_PATIENCE = "10 s";

export interface DemoJob {
  readonly name: string;
  readonly about: string;
  /** The text of the job file. */
  readonly text: string;
}

const FILL = 'while :; do echo "$(date +%T) request served"; sleep 2; done';

/** A service that moves when its node dies, a GPU job that runs for a while, and a job that nothing fits. */
export const DEMO_JOBS: readonly DemoJob[] = [
  {
    name: "web",
    about: "a service with two executions, which move when their node dies",
    text: `name: web
type: service
count: 2
selector: role=web
queueTimeout: 1h
resources: {cores: 50m, memory: 32Mi, ports: {http: dynamic}}
process: {command: [sh, -c, '${FILL}']}
update: {minReadyTime: 1s}
`,
  },
  {
    name: "train",
    about: "a batch job on two GPUs",
    text: `name: train
type: batch
queueTimeout: 1h
resources: {cores: 50m, memory: 32Mi, gpus: 2}
process:
  command: [sh, -c, 'for step in $(seq 1 600); do echo "step $step of 600"; sleep 1; done']
`,
  },
  {
    name: "huge",
    about: "a job that needs more GPUs than any machine has; `rollcall job why huge` explains it",
    text: `name: huge
type: batch
queueTimeout: 24h
resources: {cores: 50m, memory: 32Mi, gpus: 64}
process: {command: ["true"]}
`,
  },
];
