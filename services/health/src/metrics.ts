import { getHeapStatistics } from "node:v8";
import { counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/process";

/** How a Hello ended. */
export type HelloOutcome = "welcomed" | "refused" | "superseded" | "overloaded" | "store_unavailable" | "abandoned";

/** Figures that are read at each scrape, so that keeping them costs nothing. */
export interface HealthFigures {
  readonly sessions: number;
  readonly nodes: number;
  readonly beats: number;
  readonly hellosQueued: number;
  readonly transitionsQueued: number;
  /** The factor by which heartbeat intervals are stretched; 1 for none. */
  readonly stretch: number;
}

/** Metrics of the health service. */
export interface HealthMetrics {
  hello(outcome: HelloOutcome): void;
  /** Count agents that were asked to move to another replica. */
  movesAsked(count: number): void;
  /** Count a written transition. */
  transition(kind: "connection" | "health", state: string): void;
  /** Observe how long after its deadline a silent node was declared. */
  detectionDelay(delayMs: number): void;
  /** Observe by how much a tick came late. */
  loopLag(lagMs: number): void;
  /** Count time in which nothing could be observed, granted to every node. */
  observationLost(lostMs: number): void;
  /** Count a deadline, or all together, put off through no fault of a node. */
  deadlineExtended(cause: ExtensionCause, extendedMs: number): void;
  /** Count a node that beat again so soon after its declaration that it may never have been away. */
  returnedAtOnce(): void;
}

/**
 * Why a deadline was put off: the process stood still or was starved, its lease was in doubt, or it had sent an agent
 * away.
 */
export type ExtensionCause = "stall" | "lease" | "network" | "turned_away";

const DELAY_BUCKETS_SECONDS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];
const LAG_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1, 5, 30];

/** Create the metrics of the health service. `figures` is called at each scrape. */
export function createHealthMetrics(registry: MetricsRegistry, figures: () => HealthFigures): HealthMetrics {
  exposeFigures(registry, figures);
  const hellos = counter(registry, {
    name: "rollcall_health_hellos_total",
    help: "Hellos of agents, by what became of them.",
    labelNames: ["outcome"],
  });
  const moves = counter(registry, {
    name: "rollcall_health_moves_asked_total",
    help: "Agents that were asked to move to another replica, so that all have their share.",
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
    movesAsked: (count) => moves.inc(count),
    transition: (kind, state) => transitions.inc({ kind, state }),
    detectionDelay: (delayMs) => delay.observe(delayMs / 1000),
    loopLag: (lagMs) => lag.observe(lagMs / 1000),
    observationLost: (lostMs) => lost.inc(lostMs / 1000),
    ...createDeadlineMetrics(registry),
  };
}

function createDeadlineMetrics(registry: MetricsRegistry): Pick<HealthMetrics, "deadlineExtended" | "returnedAtOnce"> {
  const extensions = counter(registry, {
    name: "rollcall_health_deadline_extensions_total",
    help:
      "How often deadlines were put off through no fault of a node: all together for stall, lease and network, " +
      "one node's for turned_away.",
    labelNames: ["cause"],
  });
  const extended = counter(registry, {
    name: "rollcall_health_deadline_extension_seconds_total",
    help: "By how much deadlines were put off.",
    labelNames: ["cause"],
  });
  const returned = counter(registry, {
    name: "rollcall_health_suspect_declarations_total",
    help: "Nodes that silence made UNHEALTHY and that beat again within one threshold: perhaps they were never gone.",
  });
  return {
    deadlineExtended: (cause, extendedMs) => {
      extensions.inc({ cause });
      extended.inc({ cause }, extendedMs / 1000);
    },
    returnedAtOnce: () => returned.inc(),
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
  const heap = gauge(registry, {
    name: "rollcall_health_heap_bytes_per_session",
    help: "JavaScript heap of the whole process in use, divided by its sessions; 0 without any.",
  });
  let beatsExposed = 0;
  onScrape(registry, () => {
    const now = figures();
    sessions.set(now.sessions);
    const { used_heap_size: heapBytes } = getHeapStatistics();
    heap.set(now.sessions === 0 ? 0 : Math.round(heapBytes / now.sessions));
    nodes.set(now.nodes);
    helloQueue.set(now.hellosQueued);
    transitionQueue.set(now.transitionsQueued);
    stretch.set(now.stretch);
    beats.inc(now.beats - beatsExposed);
    beatsExposed = now.beats;
  });
}
