import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type JobSpec as JobMessage,
  JobSpecSchema,
  JobType,
  ReconcilePolicy,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import type { JobSpec, NewEvent } from "@rollcall/domain";
import { executionSpecOf, jobToText } from "@rollcall/wire";
import { versionKey, type WorkTables } from "./work-tables.ts";

/** The part of the simulated world that an operator uses. */
export interface OperatorWorld {
  readonly tables: WorkTables;
  random(): number;
  append(events: readonly NewEvent[]): void;
  /** The ids of nodes that run executions. */
  readonly nodeIds: readonly string[];
}

const MINUTE_MS = 60_000;
/**
 * The share of nodes whose executions an update replaces at the same time. It is large enough for an update to end
 * within the day.
 */
const UPDATED_SHARE = 0.025;
/** The average number of nodes on which a job of type ops runs. */
const MOST_OPS_NODES = 100;
const TYPES = { BATCH: "batch", SERVICE: "service", OPS: "ops", DAEMON: "daemon" } as const;

/** Does what people and their tools do. Submits and changes jobs, and cordons and drains nodes. */
export class WorkOperator {
  readonly #world: OperatorWorld;
  readonly #specs = new Map<string, JobMessage>();
  #batches = 0;
  #ops = 0;

  constructor(world: OperatorWorld) {
    this.#world = world;
  }

  /** Submit the first jobs: about two executions per node. */
  begin(): void {
    const nodes = this.#world.nodeIds.length;
    const half = Math.max(2, Math.floor(nodes / 2));
    const update = { maxParallel: Math.ceil(nodes * UPDATED_SHARE) };
    this.submit(jobOf("web", JobType.SERVICE, half, { update, loss: { lostAfter: durationFromMs(0) } }));
    this.submit(jobOf("shy", JobType.SERVICE, half, { update, loss: { lostAfter: durationFromMs(2 * MINUTE_MS) } }));
    const original = { reconcile: ReconcilePolicy.KEEP_ORIGINAL };
    this.submit(jobOf("loyal", JobType.SERVICE, Math.ceil(half / 2), { update, loss: original }));
    this.submit(jobOf("fixed", JobType.SERVICE, Math.ceil(half / 4), { update, loss: { noReplace: true } }));
    const stop = { stopOnAgentAfter: durationFromMs(5 * MINUTE_MS) };
    this.submit(jobOf("bound", JobType.SERVICE, Math.ceil(half / 4), { update, loss: stop }));
    const ports = [{ label: "http", port: 8_080 }];
    this.submit(
      jobOf("ported", JobType.SERVICE, Math.ceil(half / 4), { update, resources: { millicores: 100, ports } }),
    );
    this.submit(jobOf("each", JobType.DAEMON, 0, { update }));
    this.#submitBatch();
  }

  submit(message: JobMessage): void {
    const { tables } = this.#world;
    const { name, type } = message;
    const before = tables.rows.jobs.get(name);
    const version = (before?.version ?? 0) + 1;
    const nowMs = tables.world.wallMs();
    const { digest, bytes } = executionSpecOf(message, version, "operator");
    this.#specs.set(name, message);
    tables.begin();
    tables.rows.specs.set(Buffer.from(digest).toString("hex"), {
      digest: Buffer.from(digest),
      spec: Buffer.from(bytes),
    });
    const count = message.count ?? 1;
    tables.rows.jobs.set(name, {
      ...{ name, version, count, type: typeOf(type), spec: jobToText(message, count), state: "ACTIVE", message: "" },
      ...{ specDigest: Buffer.from(digest), actor: "operator", submittedAtMs: nowMs, placed: false, halted: null },
      ...{ readyVersion: before?.readyVersion ?? null, sameVersions: [], undone: null, rolledOut: false },
      waitingNodes: before?.waitingNodes ?? 0,
      run: before?.run ?? 1,
      ...{ edition: version, etag: String(version), createdAtMs: before?.createdAtMs ?? nowMs, updatedAtMs: nowMs },
    });
    tables.rows.versions.set(versionKey(name, version), {
      ...{ version, origin: version, spec: jobToText(message, count), specDigest: Buffer.from(digest) },
      ...{ actor: "operator", reason: "", createdAtMs: nowMs, readyAtMs: null },
    });
    this.#tell("job.submitted", name);
  }

  /** Make one random change. */
  act(): void {
    const { random } = this.#world;
    const acts = [this.#scale, this.#scale, this.#update, this.#restart, this.#submitBatch, this.#submitOps];
    const onNodes = [this.#cordon, this.#cordon, this.#drain, this.#drain];
    const all = [...acts, ...onNodes];
    all[Math.floor(random() * all.length)]?.call(this);
  }

  /** Order the adoption of orphans. Stop orphans whose job no longer exists. */
  seeToOrphans(onOrdered: (id: string) => void): void {
    const { tables } = this.#world;
    for (const row of tables.rows.executions.values()) {
      if (!row.isOrphan || row.order !== null) continue;
      const { id, job } = row.record;
      const isActive = tables.rows.jobs.get(job)?.state === "ACTIVE";
      row.order = { kind: isActive ? "ADOPT" : "STOP", actor: "operator", message: "" };
      onOrdered(id);
      const facts = { subject: job, actor: "operator", reason: "OPERATOR", message: "", before: null };
      this.#world.append([{ ...facts, type: "job.execution.ordered", after: { execution: id } } as NewEvent]);
    }
  }

  /** Undo everything that keeps nodes from accepting work. */
  calm(): void {
    for (const nodeId of [...this.#world.tables.rows.cordons]) this.#uncordon(nodeId);
    for (const nodeId of [...this.#world.tables.rows.drains.keys()]) this.#undrain(nodeId);
  }

  /** The message of a job as it was last submitted. A restored store may not contain it. */
  messageOf(job: string): JobMessage | null {
    return this.#specs.get(job) ?? null;
  }

  readonly #scale = (): void => {
    const job = this.#anyJob((type) => type === "service");
    if (job === null) return;
    const { tables, random } = this.#world;
    const count = Math.max(1, Math.floor(job.count * (0.5 + random())));
    const most = Math.max(2, this.#world.nodeIds.length);
    tables.begin();
    tables.rows.jobs.set(job.name, {
      ...job,
      count: Math.min(most, count),
      rolledOut: false,
      edition: job.edition + 1,
    });
    this.#tell("job.changed", job.name);
  };

  readonly #update = (): void => {
    const job = this.#anyJob((type) => type === "service" || type === "daemon");
    const message = job === null ? null : this.messageOf(job.name);
    if (job === null || message === null || message.task.case !== "process") return;
    const { command } = message.task.value;
    const task = { ...message.task.value, command: [...command.slice(0, 1), String(job.version)] };
    this.submit({ ...message, count: job.count, task: { case: "process", value: task } });
  };

  readonly #restart = (): void => {
    const job = this.#anyJob((type) => type === "service");
    if (job === null) return;
    const { tables } = this.#world;
    tables.begin();
    const submittedAtMs = tables.world.wallMs();
    tables.rows.jobs.set(job.name, { ...job, run: job.run + 1, halted: null, rolledOut: false, submittedAtMs });
    this.#tell("job.changed", job.name);
  };

  readonly #submitBatch = (): void => {
    this.#batches += 1;
    const count = Math.max(1, Math.floor(this.#world.random() * this.#world.nodeIds.length * 0.2));
    const retry = { attempts: 100, interval: durationFromMs(5_000) };
    this.submit(jobOf(`batch-${this.#batches}`, JobType.BATCH, count, { retry }));
  };

  readonly #submitOps = (): void => {
    this.#ops += 1;
    const { nodeIds, random } = this.#world;
    // Run the job on all nodes or on one node. In a large fleet, jobs on all nodes must not outnumber all other jobs.
    const isOnAll = random() < MOST_OPS_NODES / nodeIds.length;
    const constraints = isOnAll ? {} : { node: this.#anyNode() };
    // Give the job a queue timeout, because the node may be full of executions that keep running.
    const queueTimeout = durationFromMs(5 * MINUTE_MS);
    this.submit(jobOf(`ops-${this.#ops}`, JobType.OPS, 0, { constraints, queueTimeout }));
  };

  readonly #cordon = (): void => {
    const { tables } = this.#world;
    const nodeId = this.#anyNode();
    if (tables.rows.cordons.has(nodeId)) this.#uncordon(nodeId);
    else tables.rows.cordons.add(nodeId);
    this.#tellOfNode(nodeId, "node.scheduling.changed");
  };

  readonly #drain = (): void => {
    const { tables, random } = this.#world;
    const nodeId = this.#anyNode();
    if (tables.rows.drains.has(nodeId)) {
      this.#undrain(nodeId);
      return;
    }
    const startedAtMs = tables.world.wallMs();
    const deadlineMs = Math.floor((1 + random() * 20) * MINUTE_MS);
    const conditions = { force: random() < 0.2, ignoreDaemons: random() < 0.3, keepIneligible: false, maxParallel: 0 };
    tables.rows.drains.set(nodeId, {
      ...{ nodeId, deadlineMs, deadlineAtMs: startedAtMs + deadlineMs, startedAtMs, drainedAtMs: null, ...conditions },
      ...{ selection: "", queued: false, unconfirmed: false, reason: "", actor: "operator" },
    });
    this.#tellOfNode(nodeId, "node.drain.started");
  };

  #uncordon(nodeId: string): void {
    this.#world.tables.rows.cordons.delete(nodeId);
    this.#tellOfNode(nodeId, "node.scheduling.changed");
  }

  #undrain(nodeId: string): void {
    this.#world.tables.rows.drains.delete(nodeId);
    this.#tellOfNode(nodeId, "node.drain.cancelled");
  }

  #anyNode(): string {
    const { nodeIds, random } = this.#world;
    return nodeIds[Math.floor(random() * nodeIds.length)] ?? "";
  }

  #anyJob(isFit: (type: JobSpec["type"]) => boolean) {
    const { tables, random } = this.#world;
    const jobs = [...tables.rows.jobs.values()].filter(({ type, state }) => state === "ACTIVE" && isFit(type));
    return jobs[Math.floor(random() * jobs.length)] ?? null;
  }

  #tell(type: "job.submitted" | "job.changed", subject: string): void {
    const facts = { subject, actor: "operator", reason: "OPERATOR", message: "", before: null, after: null };
    this.#world.append([{ ...facts, type } as unknown as NewEvent]);
  }

  #tellOfNode(subject: string, type: "node.scheduling.changed" | "node.drain.started" | "node.drain.cancelled"): void {
    const facts = { subject, actor: "operator", reason: "OPERATOR", message: "", before: null, after: null };
    this.#world.append([{ ...facts, type } as unknown as NewEvent]);
  }
}

/** A job of the simulation. */
function jobOf(
  name: string,
  type: JobType,
  count: number,
  part: Exclude<MessageInitShape<typeof JobSpecSchema>, JobMessage>,
): JobMessage {
  return create(JobSpecSchema, {
    ...{ name, type, count, resources: { millicores: 100 } },
    task: { case: "process", value: { command: [createHash("sha256").update(name).digest("hex").slice(0, 8)] } },
    queueTimeout: durationFromMs(48 * 60 * MINUTE_MS),
    ...part,
  });
}

function typeOf(type: JobType): JobSpec["type"] {
  switch (type) {
    case JobType.BATCH:
      return TYPES.BATCH;
    case JobType.OPS:
      return TYPES.OPS;
    case JobType.DAEMON:
      return TYPES.DAEMON;
    default:
      return TYPES.SERVICE;
  }
}
