import { type ChildProcess, fork } from "node:child_process";
import { extname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { seededRandom } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { openStore, readAllocations, readLiveExecutions, SCHEDULER_LEASE, type Store } from "@rollcall/store";
import type { BenchContext } from "../bench-context.ts";
import { benchNodeId } from "../seeds/bench-nodes.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { startService } from "../servers/rollcall.ts";
import { callJobs, offerWork, submitService } from "../servers/work-of-nodes.ts";
import type { Drill, DrillResult } from "./drill.ts";
import { StoreMachines } from "./machines/store-machines.ts";

const CRASHES = { full: 1_000, short: 8 } as const;
const NODES = 8;
const MILLICORES = 2_000;
const EACH = 100;
/**
 * The number of schedulers that are started in advance, so that the next one leads as soon as the leader is
 * dead.
 */
const STANDBYS = 3;
const MOST_STEPS = 14;
const MOST_MS = 20;
const SETTLE_MS = 300_000;
const SCAN_EVERY_MS = 100;
const SERVICES = ["steady-0", "steady-1", "steady-2"];
const BATCHES = ["once-0", "once-1"];
const FIRST = 8;
const MOST = 40;

/** Kills the leading scheduler again and again. The next scheduler must take over. */
export const schedulerCrashes: Drill = {
  name: "scheduler-crashes",
  title: "SIGKILL of the leading scheduler, between any two of its steps or within one, 1,000 times",
  run: async (context, { length, agents }) => {
    const crashes = agents ?? CRASHES[length];
    const database = await startDatabase(context);
    const { url } = database;
    await seedNodes({ url, count: NODES, identities: false });
    const token = await createAccessToken(url, "admin");
    await withClient(url, async (client) => {
      await offerWork(client, { millicores: MILLICORES });
      await client.query("update node_sessions set connection = 'CONNECTED', health = 'HEALTHY'");
    });
    const store = await openStore({ url, log: silentLogger, applicationName: "drill" });
    context.atEnd(() => store.close());
    const { server, port } = await startService(context, "scheduler", url);
    for (const name of SERVICES) await submitService(port, token, { name, count: FIRST, millicores: EACH });
    for (const name of BATCHES) await callJobs(port, token, "SubmitJob", { spec: batchOf(name) });
    // Stop this scheduler. Otherwise it would lead from now on and never die.
    await server.stop();
    const world = new CrashingWorld(context, { url, store });
    await world.crash(crashes);
    await world.settle();
    return world.result(crashes);
  },
};

interface Parts {
  readonly url: string;
  readonly store: Store;
}

class CrashingWorld {
  readonly #context: BenchContext;
  readonly #parts: Parts;
  readonly #machines: StoreMachines;
  readonly #nodeIds = Array.from({ length: NODES }, (_, index) => benchNodeId(index));
  readonly #counts = new Map<string, number>();
  readonly #seed = Math.floor(Math.random() * 2 ** 31);
  readonly #random = seededRandom(this.#seed);
  readonly #processes = new Map<string, ChildProcess>();
  #started = 0;
  #isSettling = false;
  #killed = 0;
  #batches = 0;
  #looks = 0;
  #violation: string | null = null;

  constructor(context: BenchContext, parts: Parts) {
    this.#context = context;
    this.#parts = parts;
    this.#machines = new StoreMachines(parts.store, this.#nodeIds);
    context.atEnd(async () => {
      for (const process of this.#processes.values()) process.kill("SIGKILL");
    });
    context.progress(`seed ${this.#seed}`);
  }

  /**
   * Let schedulers lead and die. Keep changing jobs, so that there is always something to decide.
   */
  async crash(times: number): Promise<void> {
    for (const name of SERVICES) this.#counts.set(name, FIRST);
    while (this.#killed < times && this.#violation === null) {
      while (this.#processes.size < STANDBYS) this.#start(true);
      await this.#change();
      await this.#look();
      await delay(SCAN_EVERY_MS);
      if (this.#looks % 50 === 0) this.#context.progress(`${this.#killed} of ${times} killed`);
    }
  }

  /** Start one scheduler that does not die, and let it finish all work. */
  async settle(): Promise<void> {
    this.#isSettling = true;
    for (const process of this.#processes.values()) process.kill("SIGKILL");
    this.#start(false);
    const limit = performance.now() + SETTLE_MS;
    for (;;) {
      await this.#look();
      const complaint = this.#violation ?? (await this.#unsettled());
      if (complaint === null) return;
      if (this.#violation !== null) return;
      if (performance.now() > limit) {
        this.#violation = complaint;
        return;
      }
      await delay(SCAN_EVERY_MS);
    }
  }

  result(times: number): DrillResult {
    const violation = this.#violation ?? this.#machines.violation;
    const passed = violation === null && this.#killed >= times;
    const lines = [
      `${passed ? "PASSED" : "FAILED"}: ${this.#killed} leading schedulers were killed (seed ${this.#seed})`,
      `  executions started: ${this.#machines.starts}, none twice`,
      `  batch jobs run:     ${this.#batches}, all completed`,
      `  checks of the store: ${this.#looks}, nothing allocated twice`,
      ...(violation === null ? [] : [`  ${violation}`]),
    ];
    return { passed, text: lines.join("\n") };
  }

  #start(isDoomed: boolean): void {
    this.#started += 1;
    const instance = `doomed-${this.#started}`;
    const steps = isDoomed ? 1 + Math.floor(this.#random() * MOST_STEPS) : 0;
    const ms = this.#random() < 0.5 ? 0 : 1 + Math.floor(this.#random() * MOST_MS);
    const program = new URL(`../servers/doomed-scheduler-main${extname(import.meta.url)}`, import.meta.url);
    const child = fork(fileURLToPath(program), [instance, String(steps), String(ms)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: { ...process.env, DATABASE_URL: this.#parts.url },
    });
    this.#processes.set(instance, child);
    child.once("exit", (code, signal) => {
      this.#processes.delete(instance);
      if (signal !== "SIGKILL") this.#violation ??= `${instance} exited unexpectedly with ${code ?? signal}`;
      // Do not count schedulers that the drill itself stops at the end.
      if (isDoomed && !this.#isSettling) this.#killed += 1;
    });
  }

  /**
   * Submit or change a job in the same way as JobService. No process serves JobService here, because that
   * process would lead.
   */
  async #change(): Promise<void> {
    const { url } = this.#parts;
    const pick = (names: readonly string[]) => names[Math.floor(this.#random() * names.length)] ?? "";
    const what = this.#random();
    const name = what < 0.75 ? pick(SERVICES) : pick(BATCHES);
    const event = { type: "job.changed", subject: name, actor: "drill", reason: "DRILL", message: "" };
    await withClient(url, async (client) => {
      await client.query("begin");
      if (what < 0.6) {
        const count = 1 + Math.floor(this.#random() * MOST);
        this.#counts.set(name, count);
        await client.query("update jobs set count = $2, edition = edition + 1 where name = $1", [name, count]);
      } else {
        const { rowCount } = await client.query(
          `update jobs set state = 'ACTIVE', run = run + 1, submitted_at = now(), edition = edition + 1,
             placed = false, halted = null
           where name = $1 and state in ('ACTIVE', 'COMPLETED') and (type = 'service' or state = 'COMPLETED')`,
          [name],
        );
        if (what >= 0.75) this.#batches += rowCount ?? 0;
      }
      await client.query("select append_events($1::jsonb)", [JSON.stringify([event])]);
      await client.query("commit");
    });
  }

  async #look(): Promise<void> {
    this.#looks += 1;
    await this.#endDeadLease();
    await this.#machines.work((job) => job.startsWith("once"));
    this.#violation ??= this.#machines.violation ?? (await this.#unsound());
  }

  /** Expire the lease of a dead process immediately. */
  async #endDeadLease(): Promise<void> {
    const alive = [...this.#processes.keys()];
    await this.#parts.store.db
      .deleteFrom("leases")
      .where("name", "=", SCHEDULER_LEASE)
      .where("instance", "like", "doomed-%")
      .where("instance", "not in", alive.length === 0 ? [""] : alive)
      .execute();
  }

  /**
   * Describe resources that were allocated twice or executions that are wanted twice; null if there are none.
   */
  async #unsound(): Promise<string | null> {
    const { rows, allocations } = await this.#parts.store.transaction(async (tx) => ({
      rows: await readLiveExecutions(tx, { after: "", limit: 10_000 }),
      allocations: await readAllocations(tx, this.#nodeIds),
    }));
    const places = new Set<string>();
    for (const { execution } of rows) {
      const { job, index, desired, replacedBy, state } = execution;
      if (desired !== "RUN" || replacedBy !== null || (state !== "LIVE" && state !== "LOST")) continue;
      const place = `${job} ${index}`;
      if (places.has(place)) return `two executions are wanted for replica index ${place}`;
      places.add(place);
    }
    for (const [nodeId, { millicores }] of allocations) {
      if (millicores > MILLICORES) return `${nodeId} has allocated ${millicores} millicores`;
    }
    return null;
  }

  /** Describe unfinished work; null if everything is done. */
  async #unsettled(): Promise<string | null> {
    const { store } = this.#parts;
    const rows = await readLiveExecutions(store.db, { after: "", limit: 10_000 });
    const allocations = await readAllocations(store.db, this.#nodeIds);
    const running = new Set(this.#machines.running());
    const held = new Map<string, number>();
    for (const { execution } of rows) {
      const { id, holds, nodeId, grant } = execution;
      if (holds !== running.has(id)) return `execution ${id} holds ${holds}, and runs ${running.has(id)}`;
      if (holds) held.set(nodeId, (held.get(nodeId) ?? 0) + grant.millicores);
    }
    if (running.size !== rows.length) return `${running.size} run, and ${rows.length} are in the store`;
    for (const [nodeId, { millicores }] of allocations) {
      if (millicores !== (held.get(nodeId) ?? 0)) return `${nodeId} has allocated ${millicores} millicores`;
    }
    for (const [name, count] of this.#counts) {
      const places = rows.filter(({ execution }) => execution.job === name && execution.desired === "RUN");
      if (places.length !== count) return `job ${name} has ${places.length} of ${count}`;
    }
    const { rows: open } = await withClient(this.#parts.url, (client) =>
      client.query("select name from jobs where type = 'batch' and state <> 'COMPLETED' limit 1"),
    );
    return open.length === 0 ? null : `job ${open[0]?.name} has not completed`;
  }
}

function batchOf(name: string): object {
  return {
    ...{ name, type: "JOB_TYPE_BATCH", count: 6, queueTimeout: "3600s" },
    ...{ resources: { millicores: EACH }, process: { command: ["true"] } },
  };
}
