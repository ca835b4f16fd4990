import { create } from "@bufbuild/protobuf";
import { type HealthTotals, HealthTotalsSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { type NodeTemperature, NodeTemperatureSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { isStoreUnavailable } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import { type CallStore, coresOfHeld } from "@rollcall/store";
import type { Peers } from "../internal/peers.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { LiveView } from "../replica/live-view.ts";

export interface ClusterTotalsOptions {
  readonly store: Pick<CallStore, "lane" | "db">;
  readonly replica: LiveView;
  readonly peers: Peers;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Totals over the cluster. */
export interface ClusterSums {
  readonly totals: HealthTotals;
  /** Replicas that did not respond in time. */
  readonly missingReplicaIds: readonly string[];
}

/** How long a result is reused, in milliseconds. */
const FRESH_MS = 1_000;
/** How long core counts are reused. They change only with the machine. */
const CORES_FRESH_MS = 30_000;

/** Totals over all held nodes, computed on demand in one pass, at most once a second. */
export class ClusterTotals {
  readonly #options: ClusterTotalsOptions;
  #cores: ReadonlyMap<string, number> = new Map();
  #coresAtMs = Number.NEGATIVE_INFINITY;
  #own: { readonly atMs: number; readonly totals: Promise<HealthTotals> } | null = null;
  #cluster: { readonly atMs: number; readonly sums: Promise<ClusterSums> } | null = null;

  constructor(options: ClusterTotalsOptions) {
    this.#options = options;
  }

  /** Totals over the nodes of this replica. */
  own(): Promise<HealthTotals> {
    const nowMs = this.#options.clock.nowMs();
    if (this.#own === null || nowMs - this.#own.atMs >= FRESH_MS) {
      this.#own = { atMs: nowMs, totals: this.#sumOwn() };
    }
    return this.#own.totals;
  }

  /** Totals over all replicas. */
  cluster(): Promise<ClusterSums> {
    const nowMs = this.#options.clock.nowMs();
    if (this.#cluster === null || nowMs - this.#cluster.atMs >= FRESH_MS) {
      this.#cluster = { atMs: nowMs, sums: this.#sumCluster() };
    }
    return this.#cluster.sums;
  }

  async #sumCluster(): Promise<ClusterSums> {
    const { peers, log } = this.#options;
    const missingReplicaIds: string[] = [];
    const theirs = (await peers.all()).map(async ({ instance, client }) => {
      try {
        return (await client.getLiveTotals({})).totals ?? create(HealthTotalsSchema);
      } catch (err) {
        log.warn({ replica: instance, err }, "replica did not answer");
        missingReplicaIds.push(instance);
        return create(HealthTotalsSchema);
      }
    });
    const all = await Promise.all([this.own(), ...theirs]);
    return { totals: all.reduce(addTotals), missingReplicaIds: missingReplicaIds.sort() };
  }

  async #sumOwn(): Promise<HealthTotals> {
    const { replica } = this.#options;
    const cores = await this.#readCores();
    const totals = create(HealthTotalsSchema);
    for (const node of replica.nodes.all()) addNode(totals, node, cores.get(node.id) ?? 0);
    return totals;
  }

  /** Read the core counts from the store; while it is unavailable, use the last ones. */
  async #readCores(): Promise<ReadonlyMap<string, number>> {
    const { store, replica, clock } = this.#options;
    const nowMs = clock.nowMs();
    if (nowMs - this.#coresAtMs < CORES_FRESH_MS) return this.#cores;
    try {
      this.#cores = await coresOfHeld(store.db, replica.instance);
      this.#coresAtMs = nowMs;
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
    }
    return this.#cores;
  }
}

function addNode(totals: HealthTotals, node: LiveNode, reportedCores: number): void {
  switch (node.health.state) {
    case "HEALTHY":
      totals.healthy += 1;
      break;
    case "UNHEALTHY":
      totals.unhealthy += 1;
      return;
    case "UNKNOWN":
      totals.unknown += 1;
      return;
  }
  const latest = node.samples?.summary() ?? null;
  if (latest === null) return;
  // Give a node that has not reported its cores the weight of one core.
  const cores = Math.max(1, reportedCores);
  totals.reporting += 1;
  if (latest.cpuPercent !== null) {
    totals.cpuPercentCores += latest.cpuPercent * cores;
    totals.cores += BigInt(cores);
  }
  if (latest.memoryUsedMib !== null) {
    totals.memoryUsedMib += BigInt(latest.memoryUsedMib);
    totals.memoryTotalMib += BigInt(latest.memoryTotalMib);
  }
  totals.gpus += latest.gpus;
  totals.gpusBusy += latest.gpusBusy;
  const { averageCelsius, maxCelsius } = latest;
  if (averageCelsius !== null && averageCelsius > (totals.hottestAverage?.celsius ?? -Infinity)) {
    totals.hottestAverage = temperature(node.id, averageCelsius);
  }
  if (maxCelsius !== null && maxCelsius > (totals.hottestSensor?.celsius ?? -Infinity)) {
    totals.hottestSensor = temperature(node.id, maxCelsius);
  }
}

function temperature(nodeId: string, celsius: number) {
  return create(NodeTemperatureSchema, { nodeId, celsius });
}

/** The totals over two disjoint sets of nodes. */
export function addTotals(left: HealthTotals, right: HealthTotals): HealthTotals {
  const hottestAverage = hotter(left.hottestAverage, right.hottestAverage);
  const hottestSensor = hotter(left.hottestSensor, right.hottestSensor);
  return create(HealthTotalsSchema, {
    healthy: left.healthy + right.healthy,
    unhealthy: left.unhealthy + right.unhealthy,
    unknown: left.unknown + right.unknown,
    reporting: left.reporting + right.reporting,
    cpuPercentCores: left.cpuPercentCores + right.cpuPercentCores,
    cores: left.cores + right.cores,
    memoryUsedMib: left.memoryUsedMib + right.memoryUsedMib,
    memoryTotalMib: left.memoryTotalMib + right.memoryTotalMib,
    gpus: left.gpus + right.gpus,
    gpusBusy: left.gpusBusy + right.gpusBusy,
    ...(hottestAverage === undefined ? {} : { hottestAverage }),
    ...(hottestSensor === undefined ? {} : { hottestSensor }),
  });
}

/** Of two equally hot nodes, take the first by id, so that the result does not depend on which replica was asked. */
function hotter(left: NodeTemperature | undefined, right: NodeTemperature | undefined): NodeTemperature | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  if (left.celsius !== right.celsius) return left.celsius > right.celsius ? left : right;
  return left.nodeId < right.nodeId ? left : right;
}
