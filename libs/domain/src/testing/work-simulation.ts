import { seededRandom } from "../seeded-random.ts";
import { autoRevertTo } from "../work/edit-job.ts";
import type { Execution, Observed } from "../work/execution.ts";
import { isTerminal, mayFollow } from "../work/execution-state.ts";
import type { Job } from "../work/job.ts";
import type { JobSpec, JobType } from "../work/job-spec.ts";
import { obstaclesToWork } from "../work/placement/node-class.ts";
import type { Plan } from "../work/plan.ts";
import { explainJob } from "../work/planner/explain-job.ts";
import { isSurged, mayEnd, placedVersion } from "../work/planner/work-state.ts";
import type { WorkNode } from "../work/work-node.ts";
import { jobSpec, workNode } from "./work-fixtures.ts";
import { TestFleet } from "./work-fleet.ts";

/** The real state of a machine. */
interface Machine {
  /** The executions that run on the machine, even while it cannot be reached. */
  readonly running: Map<string, Observed>;
  /** Whether the machine's agent has a stream. */
  isReachable: boolean;
}

const GIB = 2 ** 30;
const TYPES: readonly JobType[] = ["batch", "service", "ops", "daemon"];
const NODES = 8;
const MOST_SURGE = 1;

/**
 * Runs random events on jobs and nodes, reproducible from one seed. After each event, it plans and checks invariants of
 * the plan. Some plans are lost, and sometimes another leader takes over.
 */
export class WorkSimulation {
  readonly #fleet = new TestFleet([]);
  readonly #machines = new Map<string, Machine>();
  readonly #random: () => number;
  readonly #ended = new Map<string, Execution>();
  #version = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    for (let node = 0; node < NODES / 2; node += 1) this.#join(`n${node}`);
  }

  step(): void {
    const steps = [
      ...[this.#submit, this.#submit, this.#revert, this.#changeJob, this.#join],
      ...[this.#cutOff, this.#cutOff, this.#allow, this.#allow],
      ...[
        this.#return,
        this.#return,
        this.#reboot,
        this.#cordon,
        this.#label,
        this.#drain,
        this.#undrain,
        this.#remove,
      ],
      ...[this.#work, this.#work, this.#work, this.#work, this.#fail, this.#finish, this.#pass, this.#pass],
      ...[this.#reload, this.#loseCommit],
    ];
    const chosen = steps[Math.floor(this.#random() * steps.length)] ?? this.#work;
    chosen.call(this);
    this.#planAndCheck();
  }

  /** Make everything healthy again, and check that exactly what the store wants is running after some time. */
  heal(): void {
    for (const nodeId of this.#fleet.drains.keys()) this.#undrainNode(nodeId);
    for (const nodeId of this.#machines.keys()) this.#returnNode(nodeId);
    for (let round = 0; round < 40; round += 1) {
      this.#planAndCheck();
      this.#work();
      this.#fleet.pass(400_000);
    }
    this.#planAndCheck();
    this.#work();
    this.#planAndCheck();
    for (const record of this.#fleet.executions.values()) {
      const machine = this.#machines.get(record.nodeId);
      const runs = machine?.running.has(record.id) === true;
      if (record.holds !== runs) this.#violated(`${record.id} holds ${record.holds} and runs ${runs}`, record);
      if (record.state === "LOST" && record.reason !== "GONE")
        this.#violated(`${record.id} is lost on a node that is well`, record);
    }
    for (const job of this.#fleet.jobs.values()) {
      if (job.state !== "ACTIVE" || job.spec.type !== "service" || placedVersion(job) === null) continue;
      const live = this.#fleet.running().filter((record) => record.job === job.name);
      const known = this.#fleet.memory.state.jobs.get(job.name);
      const extra = live.filter(({ replacedBy }) => replacedBy !== null);
      if (job.halted === null && extra.length > 0) this.#violated(`job ${job.name} keeps what it replaced`, extra);
      const { waiting = 0, retrying = 0 } = explainJob(this.#fleet.memory.state, job.name, this.#fleet.nowMs) ?? {};
      const accounted = live.length + waiting + retrying + (known?.failed ?? 0);
      if (live.length > job.count || accounted < job.count) {
        this.#violated(`job ${job.name} has ${live.length} of ${job.count}, and ${accounted} are accounted for`);
      }
    }
  }

  #planAndCheck(): void {
    let isNews = true;
    for (let round = 0; ; round += 1) {
      const halted = new Map([...this.#fleet.jobs].filter(([, job]) => job.halted !== null));
      const plan = this.#fleet.plan();
      this.#checkPlan(plan, halted);
      this.#checkRecord();
      if (!isNews && !plan.more && plan.executions.length + plan.jobs.length + plan.drains.length > 0) {
        this.#violated("a plan that was committed led to another", plan);
      }
      // Plan again after an update halts: the leader then reads the job's fallback version, which can lead to another
      // plan.
      isNews = plan.jobs.some(({ before, after }) => before.halted === null && after.halted !== null);
      if (!plan.more && round > 0) return;
      if (round > 50) this.#violated("plans do not end", plan);
    }
  }

  #checkPlan(plan: Plan, halted: ReadonlyMap<string, Job>): void {
    for (const { kind, before, after } of plan.executions) {
      const ended = this.#ended.get(after.id);
      if (ended !== undefined && ended.state !== after.state) this.#violated("what is final changed", [ended, after]);
      if (before !== null && !mayFollow(before.state, after.state)) this.#violated("a state that cannot follow", after);
      if (isTerminal(after.state)) this.#ended.set(after.id, after);
      if (kind !== "PLACED") continue;
      const stopped = halted.get(after.job);
      if (stopped !== undefined && after.version !== stopped.readyVersion)
        this.#violated(`placed while the update to version ${stopped.version} is halted`, after);
      const node = this.#fleet.nodes.get(after.nodeId);
      if (node === undefined || obstaclesToWork(node).length > 0)
        this.#violated("placed on a node that takes no work", after);
    }
  }

  #checkRecord(): void {
    const places = new Set<string>();
    const taken = new Map<string, { millicores: number; memory: number; ports: Set<number>; gpus: Set<string> }>();
    for (const record of this.#fleet.executions.values()) {
      if (record.desired === "RUN" && record.replacedBy === null && !isTerminal(record.state)) {
        const job = this.#fleet.jobs.get(record.job);
        const isOnEach = job?.spec.type === "daemon" || job?.spec.type === "ops";
        const place = isOnEach ? `${record.job} on ${record.nodeId}` : `${record.job} ${record.index}`;
        if (places.has(place)) this.#violated(`two executions are wanted: ${place}`, record);
        places.add(place);
      }
      if (!record.holds) continue;
      const sums = taken.get(record.nodeId) ?? { millicores: 0, memory: 0, ports: new Set(), gpus: new Set() };
      taken.set(record.nodeId, sums);
      sums.millicores += record.grant.millicores;
      sums.memory += record.grant.memoryBytes;
      for (const port of Object.values(record.grant.ports)) {
        if (sums.ports.has(port)) this.#violated(`port ${port} is given away twice`, record);
        sums.ports.add(port);
      }
      for (const uuid of record.grant.gpuUuids) {
        if (sums.gpus.has(uuid)) this.#violated(`GPU ${uuid} is given away twice`, record);
        sums.gpus.add(uuid);
      }
    }
    for (const { record, places } of this.#fleet.memory.state.jobs.values()) {
      const surged = [...places.values()].flatMap(({ executions }) => executions.filter(isSurged));
      if (surged.length > MOST_SURGE) this.#violated(`job ${record.name} keeps more than its surge`, surged);
    }
    for (const node of this.#fleet.memory.state.pool.nodes()) {
      const sums = taken.get(node.id);
      if (node.taken.millicores !== (sums?.millicores ?? 0))
        this.#violated(`allocations of ${node.id} are wrong`, sums);
      if (node.taken.memoryBytes !== (sums?.memory ?? 0)) this.#violated(`allocations of ${node.id} are wrong`, sums);
      const capacity = node.node.capacity;
      const isTooMuch = node.taken.millicores > (capacity?.millicores ?? 0) || node.taken.memoryBytes > 8 * GIB;
      if (isTooMuch) this.#violated(`node ${node.id} has given away too much`, sums);
    }
  }

  #submit(): void {
    this.#version += 1;
    const type = this.#pick(TYPES);
    this.#fleet.submit(this.#spec(`${type}${Math.floor(this.#random() * 2)}`, type));
  }

  #spec(name: string, type: JobType): JobSpec {
    const base = jobSpec();
    const isPerNode = type === "daemon" || type === "ops";
    const attempts = type === "ops" ? 0 : type === "batch" ? this.#pick([0, 2]) : this.#pick([null, 2]);
    return jobSpec({
      ...{ name, type, count: isPerNode ? 0 : 1 + Math.floor(this.#random() * 6), stopGraceMs: this.#version },
      selector: this.#pick(["", "", "zone = a"]),
      resources: {
        ...{ millicores: this.#pick([0, 250, 1_000, 1_500]), memoryBytes: this.#pick([0, GIB]), diskBytes: 0 },
        gpus: this.#pick([0, 0, 0, 1]),
        ports: this.#pick([{}, {}, { p: 0 }, { p: 80 }]) as Record<string, number>,
      },
      checked: this.#pick([true, false]),
      loss: {
        ...base.loss,
        ...{ lostAfterMs: this.#pick([0, 60_000]), replace: this.#random() > 0.2 },
        reconcile: this.#pick(["keep-original", "keep-replacement"] as const),
      },
      retry: { ...base.retry, attempts },
      update: {
        ...base.update,
        maxParallel: this.#pick([1, 3]),
        autoRevert: this.#pick([true, false]),
        maxSurge: type === "service" ? this.#pick([0, MOST_SURGE]) : 0,
      },
      strategy: this.#pick(["bin-pack", "spread"] as const),
      maxPerNode: isPerNode ? 1 : this.#pick([0, 0, 1]),
      queueTimeoutMs: this.#pick([null, null, 60_000]),
    });
  }

  #changeJob(): void {
    const job = this.#pick([...this.#fleet.jobs.values()]);
    if (job === undefined || job.state !== "ACTIVE") return;
    const what = this.#random();
    const isCounted = job.spec.type === "batch" || job.spec.type === "service";
    if (what < 0.5 && isCounted) this.#fleet.change(job.name, { count: Math.floor(this.#random() * 6) });
    else if (what < 0.75) this.#fleet.change(job.name, { state: "STOPPED" });
    else if (!isCounted || job.spec.type === "service") this.#fleet.restart(job.name);
  }

  /** Revert a job whose update has halted, as its policy or an operator would. */
  #revert(): void {
    const [due] = this.#fleet.memory.state.toRevert;
    const halted = [...this.#fleet.jobs.values()].filter(({ fallback, halted: why }) => fallback && why !== null);
    const job = due === undefined ? this.#pick(halted) : this.#fleet.jobs.get(due);
    if (job === undefined) return;
    const to = due === undefined ? (job.fallback?.version ?? null) : autoRevertTo(job);
    if (to === null) this.#violated(`job ${job.name} is to be reverted and cannot be`, job);
    this.#fleet.revert(job.name, to, due === undefined ? undefined : job.version);
  }

  #join(id = `n${Math.floor(this.#random() * NODES)}`): void {
    if (this.#machines.has(id)) return;
    this.#machines.set(id, { running: new Map(), isReachable: true });
    this.#put(id, { grantedLabels: new Map([["zone", this.#pick(["a", "b"])]]), gpus: GPUS });
  }

  #cutOff(): void {
    const id = this.#anyNode();
    const machine = this.#machines.get(id);
    if (machine === undefined || !machine.isReachable) return;
    machine.isReachable = false;
    this.#put(id, { connection: "DISCONNECTED" });
    if (this.#random() < 0.8) this.#put(id, { health: "UNHEALTHY" });
  }

  #allow(): void {
    const id = this.#anyNode();
    if (this.#fleet.nodes.get(id)?.health === "UNHEALTHY") this.#put(id, { reactionAllowed: true });
  }

  #return(): void {
    this.#returnNode(this.#anyNode());
  }

  #returnNode(id: string): void {
    const machine = this.#machines.get(id);
    if (machine === undefined) return;
    machine.isReachable = true;
    this.#put(id, { connection: "CONNECTED", health: "HEALTHY", reactionAllowed: false });
  }

  #reboot(): void {
    this.#machines.get(this.#anyNode())?.running.clear();
  }

  #cordon(): void {
    const id = this.#anyNode();
    const holds = this.#fleet.nodes.get(id)?.holds ?? [];
    this.#put(id, {
      holds: holds.includes("OPERATOR") ? holds.filter((it) => it !== "OPERATOR") : [...holds, "OPERATOR"],
    });
  }

  #label(): void {
    this.#put(this.#anyNode(), { grantedLabels: new Map([["zone", this.#pick(["a", "b"])]]) });
  }

  #drain(): void {
    const id = this.#anyNode();
    if (!this.#machines.has(id) || this.#fleet.drains.has(id)) return;
    const deadlineAtMs = this.#fleet.nowMs + 300_000;
    this.#fleet.drain(id, { deadlineAtMs, force: this.#random() < 0.3, ignoreDaemons: this.#random() < 0.3 });
  }

  #undrain(): void {
    const id = this.#pick([...this.#fleet.drains.keys()]);
    if (id !== undefined) this.#undrainNode(id);
  }

  #undrainNode(id: string): void {
    this.#fleet.drains.delete(id);
    this.#fleet.memory.removeDrain(id);
    const holds = this.#fleet.nodes.get(id)?.holds ?? [];
    this.#put(id, { holds: holds.filter((it) => it !== "DRAIN") });
  }

  #remove(): void {
    const id = this.#anyNode();
    if (this.#random() < 0.5 || !this.#machines.has(id)) return;
    this.#machines.delete(id);
    this.#fleet.drains.delete(id);
    this.#fleet.memory.removeDrain(id);
    this.#fleet.remove(id);
  }

  /** Let reachable machines carry out their orders and report. */
  #work(): void {
    for (const [nodeId, machine] of this.#machines) {
      if (!machine.isReachable) continue;
      for (const record of [...this.#fleet.executions.values()]) {
        if (record.nodeId !== nodeId) continue;
        this.#follow(record, machine);
      }
    }
  }

  #follow({ id, desired, holds }: Execution, { running }: Machine): void {
    const seen = this.#fleet.observations.get(id)?.observed ?? null;
    if (desired === "STOP" && (running.delete(id) || (holds && seen !== "ENDED"))) {
      this.#fleet.observe(id, "ENDED", { end: "STOPPED" });
      return;
    }
    if (desired !== "RUN" || seen === "ENDED") return;
    const runs = running.get(id);
    if (runs === undefined && seen !== null) {
      this.#fleet.observe(id, "ENDED", { end: "GONE" });
      return;
    }
    const next = runs === undefined ? "STARTING" : runs === "STARTING" ? "RUNNING" : "READY";
    running.set(id, next);
    if (seen !== next) this.#fleet.observe(id, next);
  }

  #fail(): void {
    this.#exit(1);
  }

  #finish(): void {
    this.#exit(0);
  }

  #exit(exitCode: number): void {
    const [id, machine] = this.#pick([...this.#machines]) ?? [];
    const running = [...(machine?.running.keys() ?? [])];
    if (id === undefined || machine === undefined || running.length === 0 || !machine.isReachable) return;
    const ended = this.#pick(running) as string;
    machine.running.delete(ended);
    this.#fleet.observe(ended, "ENDED", { end: this.#pick(["EXITED", "EXITED", "OOM"] as const), exitCode });
  }

  #pass(): void {
    this.#fleet.pass(this.#pick([1_000, 10_000, 60_000, 400_000]));
  }

  /** Check that a new leader plans nothing that the previous one did not. */
  #reload(): void {
    this.#fleet.reload();
    const plan = this.#fleet.memory.plan(this.#fleet.input());
    // Exclude finite jobs: a replica that could not be placed before may find a node now.
    const executions = plan.executions.filter(({ after }) => !mayEnd(this.#fleet.jobs.get(after.job) as Job));
    if (executions.length > 0) this.#violated("another leader decides otherwise", executions);
    this.#fleet.reload();
  }

  /** Check that a leader reverts its memory after a plan that it could not commit. */
  #loseCommit(): void {
    for (const happen of [this.#submit, this.#allow, this.#work, this.#fail, this.#label]) happen.call(this);
    const plan = this.#fleet.memory.plan(this.#fleet.input());
    this.#fleet.memory.revert(plan);
    this.#checkRecord();
  }

  #anyNode(): string {
    return `n${Math.floor(this.#random() * NODES)}`;
  }

  #put(id: string, part: Partial<WorkNode>): void {
    if (this.#machines.has(id)) this.#fleet.put(id, { ...(this.#fleet.nodes.get(id) ?? workNode(id)), ...part });
  }

  #pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)] as Value;
  }

  #violated(what: string, about?: unknown): never {
    throw new Error(`${what}: ${JSON.stringify(about)}`);
  }
}

const GPUS = [
  { index: 0, uuid: "g0", model: "nvidia a100" },
  { index: 1, uuid: "g1", model: "nvidia a100" },
];
