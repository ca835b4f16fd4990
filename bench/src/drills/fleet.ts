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

/** The full size, with the default configuration. */
export const FULL_SIZE: FleetSize = {
  agents: 1_000,
  replicas: 2,
  intervalMs: 15_000,
  unhealthyAfterMs: 60_000,
};

/** A small fleet for short drills. Its times are about twenty times shorter. */
export const SHORT_SIZE: FleetSize = {
  agents: 100,
  replicas: 2,
  intervalMs: 500,
  unhealthyAfterMs: 3_000,
};

/**
 * The maximum number of API connections of a replica. It is less than the default, because the API shares the
 * limit of open files with the agents.
 */
const MOST_API_CONNECTIONS = 512;
const RECOVER_WITHIN_MS = 300_000;
const LONGEST_PATIENCE_MS = 20_000;
/**
 * The minimum time that an agent waits for an Ack before it leaves a path, in heartbeat intervals. Each interval has an
 * Ack, so the time must exceed one interval.
 */
const LEAST_PATIENCE = 4 / 3;

/** Options that differ from the default fleet. */
export interface FleetOptions {
  /** Whether to put a fault proxy in front of each replica. */
  readonly hasProxies?: boolean;
  /** Whether all agents start at the first replica. */
  readonly isOnFirst?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

/** The CPU seconds that a fleet has used. */
export interface FleetCpu {
  readonly replicas: number;
  readonly postgres: number;
}

/** The time and CPU that the first connection of all agents took. */
export type CameIn = FleetCpu & { readonly tookMs: number };

/** The CPU used between two readings. */
export function cpuBetween(before: FleetCpu, after: FleetCpu): FleetCpu {
  return {
    replicas: after.replicas - before.replicas,
    postgres: after.postgres - before.postgres,
  };
}

/** Replicas and their agents. All agents are connected and HEALTHY before anything is broken. */
export class Fleet {
  readonly database: BenchDatabase;
  readonly proxies: readonly FaultProxy[];
  readonly #context: BenchContext;
  readonly #size: FleetSize;
  readonly #options: FleetOptions;
  readonly #replicas: RunningService[];
  readonly #loads: PacedLoads;
  #startRevision = "0";
  #reconnects: CameIn = { tookMs: 0, replicas: 0, postgres: 0 };

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

  get reconnects(): CameIn {
    return this.#reconnects;
  }

  get replicas(): readonly RunningService[] {
    return this.#replicas;
  }

  /** Kill all replicas at the same moment, and restart them on the same ports after `downMs`. */
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

  /** Kill the agents of these nodes. Returns when each of these agents last sent something. */
  async kill(nodes: readonly number[]): Promise<PacedOutcome["killed"]> {
    return (await this.#loads.order({ kind: "kill", nodes })).killed;
  }

  /** Restart killed agents as new processes. */
  async revive(nodes: readonly number[]): Promise<void> {
    await this.#loads.order({ kind: "revive", nodes });
  }

  /** Move agents from their replica to the next. */
  async move(nodes: readonly number[]): Promise<void> {
    await this.#loads.order({ kind: "move", nodes });
  }

  /** The CPU that the replicas and Postgres have used so far. */
  cpuSeconds(): FleetCpu {
    const used = this.#replicas.map(({ server }) => server.cpuSeconds());
    const replicas = used.reduce((sum, seconds) => sum + seconds, 0);
    return { replicas, postgres: this.database.cpuSeconds() };
  }

  /** Wait until every agent is connected and HEALTHY. Returns how long that took, in milliseconds. */
  async recover(): Promise<number> {
    const { agents, intervalMs } = this.#size;
    const startMs = performance.now();
    for (;;) {
      const { held } = await this.report();
      // Count last, because counting uses CPU of every measured process. In some drills the store comes back
      // later than the replicas.
      const healthy = held === agents ? await this.#healthy().catch(() => 0) : 0;
      const tookMs = performance.now() - startMs;
      if (held === agents && healthy === held) return tookMs;
      if (tookMs > RECOVER_WITHIN_MS + comesAtMs(agents, intervalMs)) {
        throw new Error(`${held} of ${agents} agents are connected, ${healthy} nodes are HEALTHY`);
      }
      await delay(Math.max(100, agents / 50));
    }
  }

  /** Wait until the fleet is healthy and no late event can follow. Returns what happened since the start. */
  async outcome(): Promise<DrillOutcome> {
    const recoveredAfterMs = await this.recover();
    // Wait until any node that fell silent during the fault has been declared unhealthy.
    await delay(this.#size.unhealthyAfterMs + this.#size.intervalMs);
    await this.recover();
    const { gaps, reconnects } = await this.report();
    const evaluated = await this.evaluated();
    const reactions = await this.#subjectsOf("node.reactions.allowed", "true");
    const falselyDeclared = evaluated.filter((node) => !gaps.includes(node));
    return {
      agents: this.#size.agents,
      recoveredAfterMs,
      reconnects,
      falselyDeclared,
      rightlyDeclared: evaluated.length - falselyDeclared.length,
      reactionsAllowed: reactions.length,
    };
  }

  /** Nodes that were declared UNHEALTHY or UNKNOWN since the start. */
  async evaluated(): Promise<readonly string[]> {
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
    this.#reconnects = { tookMs, replicas, postgres };
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
    `Listen.MaxConnections=${MOST_API_CONNECTIONS}`,
  ].flatMap((setting) => ["--set", setting]);
}
