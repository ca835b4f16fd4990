import { setTimeout as delay } from "node:timers/promises";
import { FaultProxy } from "@rollcall/testkit/fault-proxy";
import type { BenchContext } from "../bench-context.ts";
import { comesAtMs } from "../load/coming-in.ts";
import type { PacedOutcome } from "../load/paced-load.ts";
import { PacedLoads } from "../load/paced-loads.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { type BenchDatabase, startDatabase, withClient } from "../servers/database.ts";
import { type RunningService, startService } from "../servers/rollcall.ts";
import type { DrillOutcome, FleetSize } from "./drill.ts";

/** As configured by default. */
export const FULL_SIZE: FleetSize = {
  agents: 1_000,
  replicas: 2,
  intervalMs: 15_000,
  unhealthyAfterMs: 60_000,
};

/** Everything twenty times shorter. */
export const SHORT_SIZE: FleetSize = {
  agents: 100,
  replicas: 2,
  intervalMs: 500,
  unhealthyAfterMs: 3_000,
};

/** API connections of a replica: fewer than the default, since agents share the limit of open files. */
const READERS_OF_A_REPLICA = 512;
const RECOVER_WITHIN_MS = 300_000;
const LONGEST_PATIENCE_MS = 20_000;
/** The least patience, in intervals: there is an Ack in each. */
const LEAST_PATIENCE = 4 / 3;

/** What of a fleet is other than usual. */
export interface FleetOptions {
  /** Put a fault proxy before each replica. */
  readonly hasProxies?: boolean;
  /** All agents begin at the first replica. */
  readonly isOnFirst?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

/** CPU seconds. */
export interface FleetCpu {
  readonly replicas: number;
  readonly postgres: number;
}

/** How the agents came in at first: how long it took, and what it cost. */
export type CameIn = FleetCpu & { readonly tookMs: number };

/** What was used from one reading to the next. */
export function cpuBetween(before: FleetCpu, after: FleetCpu): FleetCpu {
  return {
    replicas: after.replicas - before.replicas,
    postgres: after.postgres - before.postgres,
  };
}

/** Replicas with agents that are held and HEALTHY, before anything is broken. */
export class Fleet {
  readonly database: BenchDatabase;
  readonly proxies: readonly FaultProxy[];
  readonly #context: BenchContext;
  readonly #size: FleetSize;
  readonly #options: FleetOptions;
  readonly #replicas: RunningService[];
  readonly #loads: PacedLoads;
  #startRevision = "0";
  #cameIn: CameIn = { tookMs: 0, replicas: 0, postgres: 0 };

  private constructor(
    context: BenchContext,
    size: FleetSize,
    options: FleetOptions,
    parts: {
      readonly database: BenchDatabase;
      readonly replicas: RunningService[];
      readonly proxies: readonly FaultProxy[];
    },
  ) {
    this.#context = context;
    this.#size = size;
    this.#options = options;
    this.database = parts.database;
    this.proxies = parts.proxies;
    this.#replicas = parts.replicas;
    this.#loads = new PacedLoads(context, size.agents);
  }

  /** Start everything, and wait until every node is HEALTHY. */
  static async start(context: BenchContext, size: FleetSize, options: FleetOptions = {}): Promise<Fleet> {
    const database = await startDatabase(context, size.replicas);
    await seedNodes({ url: database.url, count: size.agents, identities: true });
    const replicas: RunningService[] = [];
    const proxies: FaultProxy[] = [];
    for (let index = 0; index < size.replicas; index += 1) {
      const more = options.env === undefined ? {} : { env: options.env };
      const replica = await startService(context, "health", database.url, flagsOf(size), more);
      replicas.push(replica);
      if (options.hasProxies !== true) continue;
      const proxy = await FaultProxy.start(replica.port);
      context.atEnd(() => proxy.close());
      proxies.push(proxy);
    }
    const fleet = new Fleet(context, size, options, { database, replicas, proxies });
    await fleet.#runAgents();
    return fleet;
  }

  get cameIn(): CameIn {
    return this.#cameIn;
  }

  get replicas(): readonly RunningService[] {
    return this.#replicas;
  }

  /** Kill every replica at the same moment, and start them again at the same ports some time later. */
  async restartAll(downMs: number): Promise<void> {
    for (const { server } of this.#replicas) server.signal("SIGKILL");
    await Promise.all(this.#replicas.map(({ server }) => server.stop()));
    await delay(downMs);
    const { url } = this.database;
    const again = this.#replicas.map(({ ports }) =>
      startService(this.#context, "health", url, flagsOf(this.#size), { ports }),
    );
    this.#replicas.splice(0, this.#replicas.length, ...(await Promise.all(again)));
  }

  /** The state of the agents. */
  report(): Promise<PacedOutcome> {
    return this.#loads.order({ kind: "report", gapMs: this.#size.unhealthyAfterMs });
  }

  /** Let the agents of these nodes die, and answer when each last sent something. */
  async kill(nodes: readonly number[]): Promise<PacedOutcome["killed"]> {
    return (await this.#loads.order({ kind: "kill", nodes })).killed;
  }

  /** Let agents that were killed start again, as new processes. */
  async revive(nodes: readonly number[]): Promise<void> {
    await this.#loads.order({ kind: "revive", nodes });
  }

  /** Let agents leave their replica for the next. */
  async move(nodes: readonly number[]): Promise<void> {
    await this.#loads.order({ kind: "move", nodes });
  }

  /** What the replicas and Postgres have used so far. */
  cpuSeconds(): FleetCpu {
    const used = this.#replicas.map(({ server }) => server.cpuSeconds());
    const replicas = used.reduce((sum, seconds) => sum + seconds, 0);
    return { replicas, postgres: this.database.cpuSeconds() };
  }

  /** Wait until every agent is held and HEALTHY. Answers how long it took. */
  async recover(): Promise<number> {
    const { agents, intervalMs } = this.#size;
    const startMs = performance.now();
    for (;;) {
      const { held } = await this.report();
      // Counting costs every process that is measured. The record comes back later than the replicas in some drills.
      const healthy = held === agents ? await this.#healthy().catch(() => 0) : 0;
      const tookMs = performance.now() - startMs;
      if (held === agents && healthy === held) return tookMs;
      if (tookMs > RECOVER_WITHIN_MS + comesAtMs(agents, intervalMs)) {
        throw new Error(`${held} of ${agents} agents are held, ${healthy} nodes are HEALTHY`);
      }
      await delay(Math.max(100, agents / 50));
    }
  }

  /** Wait until all is well again and nothing can come any more, then say what happened since the start. */
  async outcome(): Promise<DrillOutcome> {
    const recoveredAfterMs = await this.recover();
    // Who fell silent in the fault would be declared by now.
    await delay(this.#size.unhealthyAfterMs + this.#size.intervalMs);
    await this.recover();
    const { gaps, reconnects } = await this.report();
    const judged = await this.judged();
    const reactions = await this.#subjectsOf("node.reactions.allowed", "true");
    const falselyJudged = judged.filter((node) => !gaps.includes(node));
    return {
      agents: this.#size.agents,
      recoveredAfterMs,
      reconnects,
      falselyJudged,
      rightlyJudged: judged.length - falselyJudged.length,
      reactionsAllowed: reactions.length,
    };
  }

  /** Nodes that were declared UNHEALTHY or UNKNOWN since the start. */
  async judged(): Promise<readonly string[]> {
    return this.#subjectsOf("node.health.changed", "after ->> 'health' <> 'HEALTHY'");
  }

  async #runAgents(): Promise<void> {
    const { agents, intervalMs, unhealthyAfterMs } = this.#size;
    const before = this.cpuSeconds();
    const through = this.#options.hasProxies === true ? this.proxies : this.#replicas;
    await this.#loads.run({
      ports: through.map(({ port }) => port),
      isSpread: this.#options.isOnFirst !== true,
      intervalMs,
      patienceMs: Math.max(Math.min(LONGEST_PATIENCE_MS, unhealthyAfterMs / 3), intervalMs * LEAST_PATIENCE),
    });
    const tookMs = await this.recover();
    const { replicas, postgres } = cpuBetween(before, this.cpuSeconds());
    this.#cameIn = { tookMs, replicas, postgres };
    const each = (seconds: number) => ((seconds / agents) * 1_000).toFixed(1);
    this.#context.progress(
      `${agents} agents HEALTHY after ${(tookMs / 1_000).toFixed(1)} s, each for ${each(replicas)} ms of CPU ` +
        `of the replicas and ${each(postgres)} ms of Postgres`,
    );
    const { rows } = await withClient(this.database.url, (client) =>
      client.query("select coalesce(max(revision), 0)::text as revision from events"),
    );
    this.#startRevision = rows[0]?.revision ?? "0";
  }

  async #healthy(): Promise<number> {
    const { rows } = await withClient(this.database.url, (client) =>
      client.query(
        "select count(*)::int as count from node_sessions where health = 'HEALTHY' and connection = " +
          "'CONNECTED' and node_type = 'COMPUTE' and replica_id in (select instance from leases)",
      ),
    );
    return rows[0]?.count ?? 0;
  }

  async #subjectsOf(type: string, condition: string): Promise<readonly string[]> {
    const { rows } = await withClient(this.database.url, (client) =>
      client.query(`select distinct subject from events where revision > $1 and type = $2 and ${condition}`, [
        this.#startRevision,
        type,
      ]),
    );
    return rows.map(({ subject }) => String(subject));
  }
}

function flagsOf({ intervalMs, unhealthyAfterMs }: FleetSize): readonly string[] {
  return [
    `Orchestrator.NodeManager.DisconnectTimeout=${unhealthyAfterMs}ms`,
    `Orchestrator.NodeManager.UnknownTimeout=${unhealthyAfterMs * 5}ms`,
    `Compute.Heartbeat.Interval=${intervalMs}ms`,
    `Listen.MaxConnections=${READERS_OF_A_REPLICA}`,
  ].flatMap((setting) => ["--set", setting]);
}
