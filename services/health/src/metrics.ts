import { counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/runtime";

/** What became of a Hello. */
export type HelloOutcome =
  | "welcomed"
  | "refused"
  | "superseded"
  | "overloaded"
  | "store_unavailable"
  | "abandoned";

/** Figures that are read when somebody scrapes, so that keeping them costs nothing. */
export interface HealthFigures {
  readonly sessions: number;
  readonly nodes: number;
  readonly beats: number;
  readonly hellosQueued: number;
  readonly transitionsQueued: number;
  /** By how much heartbeat intervals are stretched; 1 for not at all. */
  readonly stretch: number;
}

/** What the health service tells of itself. */
export interface HealthMetrics {
  hello(outcome: HelloOutcome): void;
  /** A transition that was written. */
  transition(kind: "connection" | "health", state: string): void;
  /** How long after its deadline a silent node was declared. */
  detectionDelay(delayMs: number): void;
  /** By how much a tick came late. */
  loopLag(lagMs: number): void;
  /** Time in which nothing could be observed, granted to every node. */
  observationLost(lostMs: number): void;
}

const DELAY_BUCKETS_SECONDS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];
const LAG_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];

/** Create the metrics of the health service. `figures` is asked at each scrape. */
export function createHealthMetrics(
  registry: MetricsRegistry,
  figures: () => HealthFigures,
): HealthMetrics {
  exposeFigures(registry, figures);
  const hellos = counter(registry, {
    name: "rollcall_health_hellos_total",
    help: "Hellos of agents, by what became of them.",
    labelNames: ["outcome"],
  });
  const transitions = counter(registry, {
    name: "rollcall_health_transitions_total",
    help: "Changes of connection and detected health that were written.",
    labelNames: ["kind", "state"],
  });
  const delay = histogram(registry, {
    name: "rollcall_health_detection_delay_seconds",
    help: "How long after its deadline a silent node was declared.",
    buckets: DELAY_BUCKETS_SECONDS,
  });
  const lag = histogram(registry, {
    name: "rollcall_health_loop_lag_seconds",
    help: "By how much the detector's tick came late.",
    buckets: LAG_BUCKETS_SECONDS,
  });
  const lost = counter(registry, {
    name: "rollcall_health_observation_lost_seconds_total",
    help: "Time in which this process could observe nothing, and which every node was granted.",
  });
  return {
    hello: (outcome) => hellos.inc({ outcome }),
    transition: (kind, state) => transitions.inc({ kind, state }),
    detectionDelay: (delayMs) => delay.observe(delayMs / 1000),
    loopLag: (lagMs) => lag.observe(lagMs / 1000),
    observationLost: (lostMs) => lost.inc(lostMs / 1000),
  };
}

function exposeFigures(registry: MetricsRegistry, figures: () => HealthFigures): void {
  const sessions = gauge(registry, {
    name: "rollcall_health_sessions",
    help: "Agents' streams that were welcomed and are open.",
  });
  const nodes = gauge(registry, {
    name: "rollcall_health_nodes_held",
    help: "Nodes that this replica judges, with and without a stream.",
  });
  const helloQueue = gauge(registry, {
    name: "rollcall_health_hello_queue",
    help: "Hellos that wait for the record.",
  });
  const transitionQueue = gauge(registry, {
    name: "rollcall_health_transition_queue",
    help: "Nodes whose state is not written yet.",
  });
  const beats = counter(registry, {
    name: "rollcall_health_beats_total",
    help: "Heartbeats that took effect.",
  });
  const stretch = gauge(registry, {
    name: "rollcall_health_interval_stretch",
    help: "By how much heartbeat intervals are stretched to keep within the budget; 1 for not at all.",
  });
  let beatsExposed = 0;
  onScrape(registry, () => {
    const now = figures();
    sessions.set(now.sessions);
    nodes.set(now.nodes);
    helloQueue.set(now.hellosQueued);
    transitionQueue.set(now.transitionsQueued);
    stretch.set(now.stretch);
    beats.inc(now.beats - beatsExposed);
    beatsExposed = now.beats;
  });
}
