import { describe, expect, it } from "@jest/globals";
import { checkJob, MOST_SPEC_BYTES, recheckJob } from "./check-job.ts";
import type { JobDraft } from "./job-draft.ts";

const PROCESS = {
  kind: "process",
  command: ["sleep", "1"],
  env: {},
  secretEnv: {},
  user: "",
  directory: "",
  stop: { signal: "", graceMs: null },
  output: { maxFileBytes: 0, maxFiles: 0 },
} as const;

const CONTAINER = { ...PROCESS, kind: "docker", command: [], image: "redis:7" } as const;

const DRAFT: JobDraft = {
  name: "web",
  owner: "token:ci",
  type: "batch",
  count: null,
  selector: "",
  matchAgentLabels: false,
  constraints: { nodeId: "", gpuModel: "", gpuIndices: [], minAgentVersion: "", os: "", architecture: "" },
  resources: { millicores: 100, memoryBytes: 1, diskBytes: 0, gpus: 0, pids: 100, ports: [] },
  task: PROCESS,
  check: null,
  loss: { lostAfterMs: null, stopOnAgentAfterMs: null, noReplace: false, reconcile: null },
  retry: { attempts: null, backoff: null, intervalMs: null, maxMs: null },
  update: { maxParallel: 0, maxSurge: 0, minReadyMs: null, readyDeadlineMs: null, autoRevert: false },
  placement: { strategy: null, maxPerNode: 0 },
  queueTimeoutMs: null,
  maxRunTimeMs: null,
  sizeBytes: 100,
};

describe("checkJob(), the count", () => {
  it.each([
    ["batch", null, 1],
    ["service", 0, 0],
    ["service", 3, 3],
    ["daemon", null, 0],
    ["ops", null, 0],
  ] as const)("should read a %s job with count %s as %s executions", (type, count, expected) => {
    expect(specOf({ ...DRAFT, type, count }).count).toBe(expected);
  });

  it.each(["daemon", "ops"] as const)("should refuse any count for jobs of type %s, also 0", (type) => {
    for (const count of [0, 1]) expect(fieldsOf({ ...DRAFT, type, count })).toEqual(["count"]);
  });
});

function specOf(draft: JobDraft) {
  const checked = checkJob(draft);
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return checked.spec;
}

function fieldsOf(draft: JobDraft) {
  const checked = checkJob(draft);
  return checked.ok ? [] : checked.violations.map(({ field }) => field);
}

describe("checkJob()", () => {
  it("should fill in omitted values", () => {
    expect(specOf(DRAFT)).toEqual({
      name: "web",
      type: "batch",
      count: 1,
      selector: "",
      matchAgentLabels: false,
      constraints: {
        ...{ nodeId: null, gpuModel: null, gpuIndices: [], minAgentVersion: null, os: null, architecture: null },
      },
      resources: { millicores: 100, memoryBytes: 1, diskBytes: 0, gpus: 0, ports: {} },
      executor: "process",
      user: null,
      directory: null,
      checked: false,
      ...{ owner: "token:ci", secrets: [] },
      loss: { lostAfterMs: 0, stopOnAgentAfterMs: null, replace: true, reconcile: "keep-replacement" },
      retry: { attempts: 3, backoff: "exponential", intervalMs: 5_000, maxMs: 300_000 },
      update: { maxParallel: 1, maxSurge: 0, minReadyMs: 10_000, readyDeadlineMs: 300_000, autoRevert: false },
      strategy: "bin-pack",
      maxPerNode: 0,
      queueTimeoutMs: null,
      stopGraceMs: 5_000,
    });
  });

  it("should name each secret once that its variables are read from", () => {
    const secretEnv = { A: "password", B: "key", C: "password" };
    expect(specOf({ ...DRAFT, task: { ...PROCESS, secretEnv } }).secrets).toEqual(["key", "password"]);
  });

  it.each([
    ["batch", 3],
    ["service", null],
    ["daemon", null],
    ["ops", 0],
  ] as const)("should give a job of type %s %j further attempts", (type, attempts) => {
    expect(specOf({ ...DRAFT, type }).retry.attempts).toBe(attempts);
  });

  it.each([
    ["batch", null, "bin-pack"],
    ["service", null, "even"],
    ["service", "bin-pack", "bin-pack"],
    ["service", "spread", "spread"],
    ["batch", "spread", "spread"],
  ] as const)("should place a job of type %s with strategy %j by %s", (type, strategy, expected) => {
    expect(specOf({ ...DRAFT, type, placement: { ...DRAFT.placement, strategy } }).strategy).toBe(expected);
  });

  it("should keep no user of a container for the node to check, and the ports by label", () => {
    const ports = [
      { label: "http", port: 0 },
      { label: "admin", port: 9000 },
    ];
    const task = { ...CONTAINER, user: "1000:1000" };
    const spec = specOf({ ...DRAFT, task, resources: { ...DRAFT.resources, ports } });
    expect(spec).toMatchObject({ executor: "docker", user: null, resources: { ports: { http: 0, admin: 9000 } } });
  });

  it("should report all violations at once", () => {
    const draft: JobDraft = {
      ...DRAFT,
      name: "-web",
      type: "daemon",
      count: 2,
      selector: "a in",
      constraints: {
        ...{ nodeId: "n 1", gpuModel: "h100", gpuIndices: [1, 1], minAgentVersion: "x", os: "", architecture: "" },
      },
      resources: {
        ...{ millicores: 1, memoryBytes: 2 ** 60, diskBytes: 0, gpus: 0, pids: 5_000_000 },
        ports: [
          { label: "http", port: 80 },
          { label: "Bad", port: 80 },
          { label: "http", port: 70_000 },
        ],
      },
      task: {
        ...PROCESS,
        command: [],
        env: { "1A": "", ROLLCALL_ID: "x", PORT_HTTP: "1", TOKEN: "" },
        secretEnv: { TOKEN: "../key" },
        directory: "/srv/../etc",
        user: "a b",
        stop: { signal: "TERM", graceMs: 4_000_000 },
      },
      check: { probe: { kind: "http", port: "grpc", path: "health" }, intervalMs: 1, timeoutMs: 0, failures: 3 },
      retry: { attempts: null, backoff: null, intervalMs: 400_000, maxMs: null },
      update: { maxParallel: 0, maxSurge: 2, minReadyMs: 300_000, readyDeadlineMs: null, autoRevert: false },
      placement: { strategy: null, maxPerNode: 2 },
      maxRunTimeMs: 5_000,
      sizeBytes: MOST_SPEC_BYTES + 1,
    };
    const checked = checkJob(draft);
    const text = "the job has 65537 bytes as a protobuf message, the limit is 65536; shorten it";
    expect(checked).toMatchObject({ violations: expect.arrayContaining([{ field: "", message: text }]) });
    expect(fieldsOf(draft)).toEqual([
      ...["name", "count", "selector", ""],
      ...["constraints.node", "constraints.gpu_model", "constraints.gpu_indices", "constraints.gpu_indices[1]"],
      "constraints.min_agent_version",
      "resources.memory_bytes",
      "resources.pids",
      ...["resources.ports[1].label", "resources.ports[1].port", "resources.ports[2].label", "resources.ports[2].port"],
      ...["process.command", "process.directory", "process.user"],
      ...['process.env["1A"]', 'process.env["ROLLCALL_ID"]', 'process.env["PORT_HTTP"]'],
      ...['process.secret_env["TOKEN"]', 'process.secret_env["TOKEN"]'],
      ...["process.stop.signal", "process.stop.grace"],
      ...["check.http.path", "check.http.port", "check.interval", "check.timeout"],
      ...[
        "retry.max",
        "update.max_surge",
        "update.max_surge",
        "update.ready_deadline",
        "max_run_time",
        "placement.max_per_node",
      ],
    ]);
  });

  it("should ask for a type and a task", () => {
    expect(fieldsOf({ ...DRAFT, type: null, task: null })).toEqual(["type", "task"]);
  });

  it.each([
    [
      { loss: { ...DRAFT.loss, stopOnAgentAfterMs: 60_000 } },
      "this job stops when the control plane is unreachable for 60 s",
    ],
    [{ type: "service" }, "so an execution counts as ready as soon as it runs"],
    [{ task: CONTAINER }, "it has no digest"],
    [{ matchAgentLabels: true, selector: "a" }, "a node can match by setting labels on itself"],
  ] as const)("should warn where %j", (part, warning) => {
    const checked = checkJob({ ...DRAFT, ...part });
    expect(checked).toMatchObject({ ok: true, warnings: [expect.stringContaining(warning)] });
  });
});

describe("recheckJob()", () => {
  it("should read a job that is in order as checkJob() does", () => {
    expect(recheckJob(DRAFT, "batch")).toEqual({ spec: specOf(DRAFT), violations: [] });
  });

  it("should read what today's rules refuse as far as it can be read, with all that they hold against it", () => {
    const draft = { ...DRAFT, name: "no good!", type: null, task: null, selector: "a in", count: 3 };
    const { spec, violations } = recheckJob(draft, "service");
    expect(spec).toMatchObject({ name: "no good!", type: "service", count: 3, selector: "a in", executor: "process" });
    expect(violations.map(({ field }) => field)).toEqual(["name", "type", "selector", "task"]);
  });
});
