import type { JobSpec, NewEvent, PlacedNode } from "@rollcall/domain";
import type { LeaderStore } from "@rollcall/scheduler/leader";
import { recheckedJobOf } from "@rollcall/wire";
import { nodeIdOf, type SimulatedWork, type SimulatedWorkAgent, type WorkWorld } from "../health/index.ts";
import { commitPlan } from "./commit-plan.ts";
import { NodeReactions } from "./node-reactions.ts";
import { readNodeWork, saveReports } from "./replica-view.ts";
import { ReportWatch } from "./report-watch.ts";
import { type MachineWorld, SimulatedKeeper } from "./simulated-keeper.ts";
import { SimulatedLease } from "./simulated-lease.ts";
import { SimulatedScheduler } from "./simulated-scheduler.ts";
import { WorkAgent } from "./simulated-work-agent.ts";
import { WorkInvariants } from "./work-invariants.ts";
import { WorkOperator } from "./work-operator.ts";
import { type WorkRows, WorkTables } from "./work-tables.ts";

type AgentOf = SimulatedWork["agentOf"];
type RecordOf = SimulatedWork["recordOf"];
type OnEvent = SimulatedWork["onEvent"];
type Commit = Parameters<LeaderStore["commitWork"]>[0];

const EPOCH_WALL_MS = 1_700_000_000_000;
const SCHEDULERS = 2;
const MINUTE_MS = 60_000;
/** The longest run time of a batch execution in milliseconds. */
const LONGEST_RUN_MS = 5 * MINUTE_MS;
const FAILURE_SHARE = 0.05;
/** The share of nodes whose rows are being written by other transactions at the moment of a commit. */
const BUSY_SHARE = 0.02;
const KEPT_ENDED_MS = 60 * MINUTE_MS;
const COMPACT_EVERY = 600;
const ACT_EVERY = 30;

/**
 * Executions on the nodes of a simulation, with the schedulers, the machines, their operator and the store between
 * them.
 */
export class SimulatedWorkWorld implements SimulatedWork {
  readonly #world: WorkWorld;
  readonly #tables: WorkTables;
  readonly #lease = new SimulatedLease();
  readonly #invariants: WorkInvariants;
  readonly #reactions: NodeReactions;
  readonly #operator: WorkOperator;
  readonly #keepers = new Map<string, SimulatedKeeper>();
  readonly #schedulers: (SimulatedScheduler | null)[] = [];
  /** The specs of jobs as last read, keyed by job name. */
  readonly #specs = new Map<string, { readonly text: unknown; readonly spec: JobSpec }>();
  #started = 0;
  #looks = 0;
  #dump: WorkRows | null = null;
  #restores = 0;
  #commits = 0;
  #stale = 0;
  #fenced = 0;
  #isCalm = false;

  constructor(world: WorkWorld) {
    this.#world = world;
    this.#tables = new WorkTables({
      wallMs: () => EPOCH_WALL_MS + world.schedule.nowMs,
      nodeOf: (id) => this.#nodeOf(id),
      epochOf: (id) => world.record.sessions[Number(id.slice(1))]?.epoch ?? 0,
    });
    const nodeIds = Array.from({ length: world.agentCount }, (_, index) => index)
      .filter((index) => world.runsWork(index))
      .map(nodeIdOf);
    for (const id of nodeIds) this.#tables.allocation(id);
    const append = (events: readonly NewEvent[]) => world.record.append(events);
    this.#reactions = new NodeReactions(world);
    this.#operator = new WorkOperator({ tables: this.#tables, random: () => world.random(), append, nodeIds });
    this.#invariants = new WorkInvariants({
      tables: this.#tables,
      fail: (message) => world.invariants.fail(message),
      specOf: (job) => this.#specOf(job),
      typeOf: (job) => this.#tables.rows.jobs.get(job)?.type ?? null,
      isReactedTo: (nodeId) => this.#nodeOf(nodeId)?.loss.reaction === "ALLOWED",
      isHealthy: (nodeId) => this.#nodeOf(nodeId)?.health.state === "HEALTHY",
    });
    for (const id of nodeIds) this.#keepers.set(id, new SimulatedKeeper(id, this.#machineOf(id)));
  }

  readonly recordOf: RecordOf = (call) => {
    let position = 0;
    const watch = new ReportWatch({
      epochOf: (nodeId) => this.#tables.world.epochOf(nodeId),
      fail: (message) => this.#world.invariants.note(message),
    });
    return {
      logId: () => this.#tables.logId,
      readNodes: (queries) => call(() => readNodeWork(this.#tables, queries)),
      changedNodes: () =>
        call(() => {
          const changed = [...this.#tables.wanted.since(position)];
          position = this.#tables.position;
          return changed.map((nodeId) => ({ nodeId, generation: this.#tables.allocation(nodeId).generation }));
        }),
      readSpecs: (digests) =>
        call(() => digests.flatMap((it) => this.#tables.rows.specs.get(Buffer.from(it).toString("hex")) ?? [])),
      saveReports: (reports) => {
        watch.begin(reports);
        const saved = call(() => {
          saveReports(this.#tables, reports);
          this.#notifySchedulers();
          // Accept every report, because no node reports more executions than the store accepts.
          return { cutNodeIds: [] };
        });
        return saved.catch((error: unknown) => {
          watch.failed(reports);
          throw error;
        });
      },
      forgettable: (nodeId, ids) =>
        call(() =>
          ids.filter((id) => {
            const record = this.#tables.rows.executions.get(id)?.record;
            return record?.nodeId === nodeId && record.desired === "FORGET";
          }),
        ),
    };
  };

  readonly agentOf: AgentOf = (index, isAwake): SimulatedWorkAgent => {
    const id = nodeIdOf(index);
    const keeper = this.#keepers.get(id);
    if (keeper === undefined) throw new Error(`${id} runs no work`);
    return new WorkAgent(keeper, this.#machineOf(id), isAwake);
  };

  readonly cloneOf: AgentOf = (index, isAwake): SimulatedWorkAgent => {
    const id = nodeIdOf(index);
    this.#invariants.onCloned(id);
    const machine = this.#machineOf(id);
    const keeper = new SimulatedKeeper(id, machine);
    const agent = new WorkAgent(keeper, machine, isAwake);
    const crashed = agent.crashed.bind(agent);
    agent.crashed = () => {
      crashed();
      // This machine is switched off when its agent crashes, so all its processes end too.
      keeper.reboot();
    };
    return agent;
  };

  readonly onEvent: OnEvent = (event) => this.#reactions.onEvent(event);

  begin(): void {
    for (let place = 0; place < SCHEDULERS; place += 1) this.#startScheduler(place);
    this.#operator.begin();
  }

  step(): void {
    for (const scheduler of this.#schedulers) scheduler?.follow();
  }

  look(): void {
    this.#looks += 1;
    this.#notifySchedulers();
    this.#world.notifyReplicas();
    if (this.#restores > 0) this.#operator.seeToOrphans((id) => this.#invariants.onAdopted(id));
    if (this.#looks % COMPACT_EVERY === 0) this.#tables.compact(this.#tables.world.wallMs() - KEPT_ENDED_MS);
    if (this.#looks % ACT_EVERY === 0 && !this.#isCalm) this.#operator.act();
  }

  disturb(): void {
    const { random } = this.#world;
    const acts = [this.#killScheduler, this.#stopScheduler, this.#cutScheduler, this.#reboot, this.#backUp];
    const all = [...acts, this.#killScheduler, this.#stopScheduler, this.#backUp];
    all[Math.floor(random() * all.length)]?.call(this);
  }

  calm(): void {
    this.#isCalm = true;
    this.#operator.calm();
  }

  settled(): void {
    this.#invariants.settled();
  }

  readRevisions(): readonly number[] {
    return this.#schedulers.flatMap((scheduler) => scheduler?.readRevision ?? []);
  }

  describe(): string {
    const { placed, lost, starts, running } = this.#invariants;
    const counts = { placed, starts, lost, running, commits: this.#commits, stale: this.#stale, fenced: this.#fenced };
    const all = { ...counts, restores: this.#restores, schedulers: this.#started };
    return Object.entries(all)
      .map(([name, count]) => `${count.toLocaleString("en")} ${name}`)
      .join(", ");
  }

  #nodeOf(id: string): PlacedNode | null {
    const session = this.#world.record.sessions[Number(id.slice(1))];
    if (session === undefined || !this.#keepers.has(id)) return null;
    const { connection, health, loss } = session;
    const drain = this.#tables.rows.drains.get(id);
    const by = { sinceMs: 0, message: "", actor: "operator" };
    const holds = [
      ...session.holds,
      ...(this.#tables.rows.cordons.has(id) ? [{ kind: "OPERATOR" as const, ...by }] : []),
      ...(drain === undefined ? [] : [{ kind: "DRAIN" as const, ...by }]),
    ];
    const membership = { state: "APPROVED", sinceMs: 0, reason: "SIMULATED", message: "", actor: "system" } as const;
    const disturbedAtMs = null;
    return { id, type: "COMPUTE", membership, connection, health, holds, disturbedAtMs, labels: [], info: INFO, loss };
  }

  #specOf(name: string): JobSpec | null {
    const job = this.#tables.rows.jobs.get(name);
    if (job === undefined) return null;
    const { spec: text } = job;
    const known = this.#specs.get(name);
    if (known?.text === text) return known.spec;
    const { spec } = recheckedJobOf(job);
    this.#specs.set(name, { text, spec });
    return spec;
  }

  #machineOf(nodeId: string): MachineWorld {
    const { schedule } = this.#world;
    return {
      nowMs: () => schedule.nowMs,
      wallMs: () => this.#tables.world.wallMs(),
      random: () => this.#world.random(),
      after: (ms, run) => void schedule.after(ms, run),
      started: (id) => this.#invariants.onStarted(id, nodeId),
      ended: (id) => this.#invariants.onEnded(id),
      stopping: (id, logId) => this.#invariants.onStopping(id, logId),
      lifeOf: (job) => {
        if (!job.startsWith("batch") && !job.startsWith("ops")) return null;
        const { random } = this.#world;
        return { ms: random() * LONGEST_RUN_MS, code: random() < FAILURE_SHARE ? 1 : 0 };
      },
    };
  }

  #startScheduler(place: number): void {
    if (this.#schedulers[place] != null) return;
    this.#started += 1;
    const options = {
      ...{ world: this.#world, tables: this.#tables, lease: this.#lease },
      commit: (instance: string, commit: Commit) => this.#commit(instance, commit),
    };
    this.#schedulers[place] = new SimulatedScheduler(options, `s${place}-${this.#started}`, this.#world.slots + place);
  }

  #commit(instance: string, commit: Commit) {
    if (this.#lease.holder !== instance) {
      this.#fenced += 1;
      return { outcome: "FENCED" } as const;
    }
    const { random, network } = this.#world;
    const committed = commitPlan(this.#tables, commit, {
      isBusy: () => !network.isCalm && random() < BUSY_SHARE,
      onPlan: (changes) => this.#invariants.onPlan(changes),
    });
    if (committed.outcome === "STALE") {
      this.#stale += 1;
      return committed;
    }
    this.#commits += 1;
    this.#world.record.append(commit.events);
    this.#world.notifyReplicas();
    return committed;
  }

  #notifySchedulers(): void {
    for (const scheduler of this.#schedulers) {
      if (scheduler === null || !this.#world.network.reachesRecord(scheduler.slot)) continue;
      this.#world.deliver(scheduler, () => scheduler.notified());
    }
  }

  readonly #killScheduler = (): void => {
    const place = this.#place();
    this.#schedulers[place]?.kill();
    this.#schedulers[place] = null;
    this.#world.schedule.after(this.#world.random() * MINUTE_MS, () => this.#startScheduler(place));
  };

  readonly #stopScheduler = (): void => {
    const scheduler = this.#schedulers[this.#place()];
    if (scheduler != null) this.#world.stop(scheduler, this.#world.random() * 2 * MINUTE_MS);
  };

  readonly #cutScheduler = (): void => {
    this.#world.network.cutFromRecord(this.#world.slots + this.#place(), this.#world.random() * 2 * MINUTE_MS);
  };

  readonly #reboot = (): void => {
    const keepers = [...this.#keepers.values()];
    keepers[Math.floor(this.#world.random() * keepers.length)]?.reboot();
  };

  /** Alternate between making a dump and restoring it. No process runs during a restore. */
  readonly #backUp = (): void => {
    if (this.#dump === null) {
      this.#dump = this.#tables.dump();
      return;
    }
    for (let place = 0; place < SCHEDULERS; place += 1) {
      this.#schedulers[place]?.kill();
      this.#schedulers[place] = null;
      this.#world.schedule.after(10_000, () => this.#startScheduler(place));
    }
    this.#world.restartAllReplicas(10_000);
    this.#tables.restore(this.#dump);
    this.#dump = null;
    this.#restores += 1;
  };

  #place(): number {
    return Math.floor(this.#world.random() * SCHEDULERS);
  }
}

/** The description that each node with executions reports about itself. */
const INFO = {
  agentVersion: "0.2.0",
  os: { family: "linux", architecture: "x64" },
  work: {
    ...{ executors: ["process"], millicores: 1_000, memoryBytes: "8589934592", diskBytes: "8589934592" },
    ...{ portMin: 20_000, portMax: 20_099, limits: ["cpu", "memory"] },
  },
} as const;
