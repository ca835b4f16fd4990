import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "@rollcall/domain";
import type { BenchContext } from "../bench-context.ts";
import { LoadProcess } from "../load/load-process.ts";
import type { RegistrationOrder, RegistrationOutcome } from "../load/registration-load.ts";
import type { WatchOrder, WatchOutcome } from "../load/watch-load.ts";
import { benchNodeId } from "../seeds/bench-nodes.ts";
import { createAccessToken, withClient } from "../servers/database.ts";
import { makeJoinToken } from "../servers/join-token.ts";
import { greatestOf } from "../servers/replica-metrics.ts";
import { type RunningService, startService } from "../servers/rollcall.ts";
import { type ChurnLimits, type ChurnOutcome, type ChurnSample, churnResult } from "./churn-result.ts";
import type { Drill, FleetSize } from "./drill.ts";
import { Fleet, FULL_SIZE, SHORT_SIZE } from "./fleet.ts";

/** How long the churn lasts, and how often each kind of change is made. */
interface ChurnPlan {
  readonly size: FleetSize;
  readonly lastsMs: number;
  readonly roundMs: number;
  readonly sampleMs: number;
  /** The number of rounds that a killed agent stays away. */
  readonly awayRounds: number;
  readonly watchers: number;
  readonly joins: number;
  readonly limits: ChurnLimits;
}

const PLANS: Readonly<Record<"full" | "short", ChurnPlan>> = {
  full: {
    size: { ...FULL_SIZE, agents: 20_000 },
    lastsMs: 3_600_000,
    roundMs: 5_000,
    sampleMs: 60_000,
    awayRounds: 6,
    watchers: 100,
    joins: 100,
    limits: { warmUpMs: 600_000, growth: 0.05, lagEvents: 2_000 },
  },
  short: {
    size: SHORT_SIZE,
    lastsMs: 15_000,
    roundMs: 500,
    sampleMs: 2_000,
    awayRounds: 2,
    watchers: 10,
    joins: 10,
    // A short run cannot show growth, because code is compiled and caches fill for some minutes.
    limits: { warmUpMs: 4_000, growth: null, lagEvents: 2_000 },
  },
};

/** The share of all agents that is killed in each round. The same share moves in each round. */
const SHARE = 1 / 1_000;
/** The number of rounds between expensive changes: joins, leaves, policies and watchers. */
const ROUNDS_BETWEEN_MORE = 4;
const LAG = "rollcall_feed_lag_revisions";
/** Tables that have as many rows at the end of the drill as at its start. */
const STEADY_TABLES = ["nodes", "node_sessions", "node_labels", "node_identities", "leases", "health_replicas"];

/** Changes a fleet all the time. Nothing may grow with the number of past changes. */
export const churn: Drill = {
  name: "churn",
  title: "nothing is broken: agents die, return and move, machines join and leave, policies and watchers change",
  run: async (context, { length, agents }) => {
    const plan = PLANS[length];
    const size = { ...plan.size, ...(agents === undefined ? {} : { agents }) };
    const world = await ChurnWorld.start(context, { ...plan, size });
    return churnResult(await world.run(), plan.limits);
  },
};

class ChurnWorld {
  readonly #context: BenchContext;
  readonly #plan: ChurnPlan;
  readonly #fleet: Fleet;
  readonly #registry: RunningService;
  readonly #admin: RunningService;
  readonly #token: string;
  readonly #joinToken: string;
  readonly #watches: LoadProcess<WatchOrder, WatchOutcome>;
  readonly #registrations: LoadProcess<RegistrationOrder, RegistrationOutcome>;
  readonly #random = seededRandom(Math.floor(Math.random() * 2 ** 31));
  readonly #killedEver = new Set<string>();
  readonly #away: (readonly number[])[] = [];
  readonly #changes = { kills: 0, returns: 0, moves: 0, joins: 0, leaves: 0, policies: 0, watchers: 0 };
  #nextNode: number;
  #joined: readonly string[] = [];
  #failed = 0;
  #lastFailure = "";

  private constructor(
    context: BenchContext,
    plan: ChurnPlan,
    parts: {
      readonly fleet: Fleet;
      readonly registry: RunningService;
      readonly admin: RunningService;
      readonly token: string;
      readonly joinToken: string;
    },
  ) {
    this.#context = context;
    this.#plan = plan;
    this.#fleet = parts.fleet;
    this.#registry = parts.registry;
    this.#admin = parts.admin;
    this.#token = parts.token;
    this.#joinToken = parts.joinToken;
    this.#nextNode = plan.size.agents;
    this.#watches = new LoadProcess("watch-load");
    this.#registrations = new LoadProcess("registration-load");
    context.atEnd(() => this.#watches.stop());
    context.atEnd(() => this.#registrations.stop());
  }

  static async start(context: BenchContext, plan: ChurnPlan): Promise<ChurnWorld> {
    const fleet = await Fleet.start(context, plan.size);
    const { url } = fleet.database;
    const registry = await startService(context, "registry", url);
    const admin = await startService(context, "admin", url);
    const token = await createAccessToken(url, "admin");
    const joinToken = await makeJoinToken(url);
    return new ChurnWorld(context, plan, { fleet, registry, admin, token, joinToken });
  }

  /** Make changes one after the other for the planned time, and take samples at intervals. */
  async run(): Promise<ChurnOutcome> {
    const { lastsMs, roundMs, sampleMs, size } = this.#plan;
    const samples: ChurnSample[] = [];
    const startMs = performance.now();
    let sampledAtMs = Number.NEGATIVE_INFINITY;
    for (let round = 0; performance.now() - startMs < lastsMs; round += 1) {
      const dueMs = startMs + round * roundMs;
      await this.#killAndReturn();
      const movers = this.#someNodes();
      await this.#fleet.move(movers);
      this.#changes.moves += movers.length;
      if (round % ROUNDS_BETWEEN_MORE === 0) await this.#changeMore(round / ROUNDS_BETWEEN_MORE);
      const atMs = performance.now() - startMs;
      if (atMs - sampledAtMs >= sampleMs) {
        sampledAtMs = atMs;
        const sample = await this.#sample(atMs);
        samples.push(sample);
        this.#context.progress(JSON.stringify({ ...sample, atMs: Math.round(atMs) }));
      }
      await delay(Math.max(0, dueMs + roundMs - performance.now()));
    }
    while (this.#away.length > 0) await this.#return();
    await this.#fleet.recover();
    const { gaps } = await this.#fleet.report();
    const evaluated = await this.#fleet.evaluated();
    return {
      agents: size.agents,
      samples,
      changes: this.#changes,
      failed: this.#failed,
      lastFailure: this.#lastFailure,
      falselyDeclared: evaluated.filter((node) => !this.#killedEver.has(node) && !gaps.includes(node)),
    };
  }

  async #killAndReturn(): Promise<void> {
    if (this.#away.length >= this.#plan.awayRounds) await this.#return();
    const gone = new Set(this.#away.flat());
    const victims = this.#someNodes().filter((node) => !gone.has(node));
    await this.#fleet.kill(victims);
    for (const node of victims) this.#killedEver.add(benchNodeId(node));
    this.#away.push(victims);
    this.#changes.kills += victims.length;
  }

  async #return(): Promise<void> {
    const back = this.#away.shift() ?? [];
    await this.#fleet.revive(back);
    this.#changes.returns += back.length;
  }

  #someNodes(): readonly number[] {
    const { agents } = this.#plan.size;
    const count = Math.max(1, Math.round(agents * SHARE));
    const nodes = Array.from({ length: count }, () => Math.floor(this.#random() * agents));
    return [...new Set(nodes)];
  }

  async #changeMore(turn: number): Promise<void> {
    const { joins, watchers, size } = this.#plan;
    const { port } = this.#registry;
    const left = this.#joined;
    const from = this.#nextNode;
    this.#nextNode += joins;
    const order = { ports: [port], from, count: joins, connections: 4, joinToken: this.#joinToken };
    const { registered, failed, lastFailure } = await this.#registrations.order(order);
    this.#changes.joins += registered;
    if (failed > 0) this.#note(failed, lastFailure);
    this.#joined = Array.from({ length: joins }, (_, index) => benchNodeId(from + index));
    for (const node of left) await this.#call("AdminService/DeleteNode", { node, reason: "churn" });
    this.#changes.leaves += left.length;
    const seconds = (size.unhealthyAfterMs * (turn % 2 === 0 ? 1 : 1.25)) / 1_000;
    await this.#call("HealthPolicyService/SetHealthPolicy", {
      ...{ scope: { group: "churn" }, selector: "zone=zone-3" },
      values: { unhealthyAfter: `${seconds}s` },
    });
    this.#changes.policies += 1;
    await this.#watches.order({ kind: "release", port, token: this.#token });
    await this.#watches.order({ kind: "hold", port, token: this.#token, watchers });
    this.#changes.watchers += watchers;
  }

  async #call(method: string, body: object): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${this.#admin.port}/rollcall.admin.v1.${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.#token}` },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) this.#note(1, `${method}: ${text}`);
  }

  #note(failed: number, why: string): void {
    this.#failed += failed;
    this.#lastFailure = why;
  }

  async #sample(atMs: number): Promise<ChurnSample> {
    const heapBytes: Record<string, number> = {};
    const rssBytes: Record<string, number> = {};
    const lags: number[] = [];
    const replicas = this.#fleet.replicas.map((replica, index) => [`health ${index + 1}`, replica] as const);
    for (const [name, service] of [...replicas, ["registry", this.#registry], ["admin", this.#admin]] as const) {
      const memory = await service.server.memory();
      heapBytes[name] = memory.heapBytes;
      rssBytes[name] = memory.rssBytes;
      lags.push(await greatestOf(service.ports.probes, LAG));
    }
    return { atMs, heapBytes, rssBytes, lagEvents: Math.max(...lags), ...(await this.#tables()) };
  }

  /** A table whose number of rows stays constant grows if its dead rows are not reused. */
  async #tables(): Promise<Pick<ChurnSample, "tableBytes" | "bloatBytes">> {
    const { rows } = await withClient(this.#fleet.database.url, async (client) => {
      await client.query("create extension if not exists pgstattuple");
      return client.query(
        `select relname as name, pg_total_relation_size(relid)::float8 as bytes,
           (pg_relation_size(relid) - (pgstattuple(relid)).tuple_len)::float8 as bloat
         from pg_stat_user_tables where relname = any($1) order by relname`,
        [STEADY_TABLES],
      );
    });
    const of = (column: string) => Object.fromEntries(rows.map((row) => [String(row.name), Number(row[column])]));
    return { tableBytes: of("bytes"), bloatBytes: of("bloat") };
  }
}
