import { getHeapStatistics } from "node:v8";
import { counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/process";

/** The result of a Hello. */
export type HelloOutcome = "welcomed" | "refused" | "superseded" | "overloaded" | "store_unavailable" | "abandoned";

/** Values that are read only at each scrape, so that keeping them up to date costs nothing. */
export interface HealthFigures {
  readonly sessions: number;
  readonly nodes: number;
  readonly beats: number;
  readonly hellosQueued: number;
  readonly transitionsQueued: number;
  /** Stretch factor of heartbeat intervals; 1 for none. */
  readonly stretch: number;
}

export interface HealthMetrics {
  hello(outcome: HelloOutcome): void;
  /** Count agents that were asked to move to another replica. */
  movesAsked(count: number): void;
  /** Count a written transition. */
  transition(kind: "connection" | "health", state: string): void;
  /** Observe the time between the deadline of a silent node and its health decision. */
  detectionDelay(delayMs: number): void;
  /** Observe the delay of a tick. */
  loopLag(lagMs: number): void;
  /** Count time without any observation. Such time extends every node's deadline. */
  observationLost(lostMs: number): void;
  /** Count an extension of one deadline, or of all at once, that no node caused. */
  deadlineExtended(cause: ExtensionCause, extendedMs: number): void;
  /** Count a node that sent a heartbeat so soon after it was declared lost that it may never have been away. */
  returnedAtOnce(): void;
}

/**
 * Why a deadline was extended: the process was paused or starved ("stall"), its lease or its network was in doubt, or
 * it turned an agent away.
 */
export type ExtensionCause = "stall" | "lease" | "network" | "turned_away";

const DELAY_BUCKETS_SECONDS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];
const LAG_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1, 5, 30];

/** Create the metrics of the health service. `figures` is called at each scrape. */
export function createHealthMetrics(registry: MetricsRegistry, figures: () => HealthFigures): HealthMetrics {
  exposeFigures(registry, figures);
  const hellos = counter(registry, {
    name: "rollcall_health_hellos_total",
    help: "Hellos from agents, by outcome.",
    labelNames: ["outcome"],
  });
  const moves = counter(registry, {
    name: "rollcall_health_moves_asked_total",
    help: "Agents asked to move to another replica to balance the load.",
  });
  const transitions = counter(registry, {
    name: "rollcall_health_transitions_total",
    help: "Changes of connection and detected health written to the store.",
    labelNames: ["kind", "state"],
  });
  const delay = histogram(registry, {
    name: "rollcall_health_detection_delay_seconds",
    help: "Delay from a silent node's deadline until the node was declared.",
    buckets: DELAY_BUCKETS_SECONDS,
  });
  const lag = histogram(registry, {
    name: "rollcall_health_loop_lag_seconds",
    help: "Delay of the failure detector's ticks.",
    buckets: LAG_BUCKETS_SECONDS,
  });
  const lost = counter(registry, {
    name: "rollcall_health_observation_lost_seconds_total",
    help: "Time during which this process could not observe nodes; every node's deadline was extended by it.",
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
      "Deadline extensions that were not a node's fault: of all nodes for stall, lease and network, " +
      "of one node for turned_away.",
    labelNames: ["cause"],
  });
  const extended = counter(registry, {
    name: "rollcall_health_deadline_extension_seconds_total",
    help: "Total extension of deadlines.",
    labelNames: ["cause"],
  });
  const returned = counter(registry, {
    name: "rollcall_health_suspect_declarations_total",
    help: "Nodes that sent a heartbeat within one threshold after being declared UNHEALTHY: possible false alarms.",
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
    help: "Open streams of welcomed agents.",
  });
  const nodes = gauge(registry, {
    name: "rollcall_health_nodes_held",
    help: "Nodes whose health this replica decides, with and without a stream.",
  });
  const helloQueue = gauge(registry, {
    name: "rollcall_health_hello_queue",
    help: "Hellos waiting for the store.",
  });
  const transitionQueue = gauge(registry, {
    name: "rollcall_health_transition_queue",
    help: "Nodes whose state is not yet in the store.",
  });
  const beats = counter(registry, {
    name: "rollcall_health_beats_total",
    help: "Heartbeats that took effect.",
  });
  const stretch = gauge(registry, {
    name: "rollcall_health_interval_stretch",
    help: "Stretch factor of heartbeat intervals to stay within the budget; 1 means not stretched.",
  });
  const heap = gauge(registry, {
    name: "rollcall_health_heap_bytes_per_session",
    help: "JavaScript heap used by the process, divided by its number of sessions; 0 without sessions.",
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
