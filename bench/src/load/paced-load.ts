import { BeatFrames } from "./beat-frames.ts";
import { comesAtMs } from "./coming-in.ts";
import { agentIdentity } from "./live-agent.ts";
import { answerOrders } from "./orders.ts";
import { PacedAgent, type PacedTerms } from "./paced-agent.ts";
import { PacedMachines, type WorkFigures } from "./paced-machines.ts";

/** An order to this process. */
export type PacedOrder =
  /** Run the agents of these nodes from now on, as part of a fleet of the given size. */
  | ({
      readonly kind: "run";
      readonly firstNode: number;
      readonly agents: number;
      readonly fleet: number;
      /** Whether the machines run executions. */
      readonly runsWork?: boolean;
    } & PacedTerms)
  /** Kill these agents. */
  | { readonly kind: "kill"; readonly nodes: readonly number[] }
  /** Restart killed agents as new processes. */
  | { readonly kind: "revive"; readonly nodes: readonly number[] }
  /** Move these agents from their replica to the next. */
  | { readonly kind: "move"; readonly nodes: readonly number[] }
  /** Returns the state of the agents. */
  | { readonly kind: "report"; readonly gapMs: number };

/** The state of the agents. */
export interface PacedOutcome {
  /** Agents with an open session. */
  readonly held: number;
  /** The number of attempts that failed and of streams that ended since the process started. */
  readonly reconnects: number;
  /**
   * Nodes whose agents sent nothing for at least the given time, so that it was right to declare them
   * unhealthy.
   */
  readonly gaps: readonly string[];
  /** The number of executions that the machines have started and ended. */
  readonly work: WorkFigures;
  /** The agents that an order killed, and the wall time at which each last sent something. */
  readonly killed: readonly { readonly nodeId: string; readonly lastSentAtMs: number }[];
}

const SCAN_EVERY_MS = 20;
/**
 * The number of times that each agent is checked per interval. The checks run in small batches, so that a large
 * fleet does not occupy a core.
 */
const SCANS_PER_INTERVAL = 30;
/**
 * The limits of concurrent connection attempts, per process and in all processes of the fleet together. Further
 * attempts would wait longer than an agent's timeout and be wasted.
 */
const MOST_OPENING = 300;
const MOST_OPENING_OF_FLEET = 1_500;

const frames = new BeatFrames();
const machines = new PacedMachines();
const agents = new Map<number, PacedAgent>();
let terms: PacedTerms | null = null;
let scansAtOnce = 0;
let mostOpening = MOST_OPENING;
let turn = agents.values();
const opening = new Set<PacedAgent>();

/** Iterate over the next few agents, and start again after the last one. */
function* nextAgents(): Generator<PacedAgent> {
  for (let count = Math.min(scansAtOnce, agents.size); count > 0; count -= 1) {
    let next = turn.next();
    if (next.done) {
      turn = agents.values();
      next = turn.next();
    }
    if (next.value !== undefined) yield next.value;
  }
}

function look(): void {
  const nowMs = performance.now();
  for (const agent of opening) if (!agent.isOpening) opening.delete(agent);
  for (const agent of nextAgents()) {
    agent.look(nowMs);
    if (opening.size >= mostOpening || !agent.isDue(nowMs)) continue;
    agent.open(nowMs);
    opening.add(agent);
  }
}

function carryOut(order: PacedOrder): PacedOutcome {
  const nowMs = performance.now();
  if (order.kind === "run") {
    terms = order;
    for (let index = 0; index < order.agents; index += 1) {
      const identity = agentIdentity(order.firstNode + index);
      const retryAtMs = performance.now() + comesAtMs(Math.random() * order.fleet, order.intervalMs);
      const work = order.runsWork === true ? machines.add(identity.nodeId) : null;
      agents.set(identity.index, new PacedAgent(identity, frames, order, { retryAtMs, work }));
    }
    if (scansAtOnce === 0) setInterval(look, SCAN_EVERY_MS);
    scansAtOnce = Math.ceil((agents.size * SCANS_PER_INTERVAL * SCAN_EVERY_MS) / order.intervalMs);
    mostOpening = Math.min(MOST_OPENING, Math.ceil((MOST_OPENING_OF_FLEET * order.agents) / order.fleet));
  }
  if (order.kind === "revive" && terms !== null) {
    for (const node of order.nodes) {
      const known = agents.get(node);
      if (known === undefined) continue;
      agents.set(node, new PacedAgent(known.identity, frames, terms, { retryAtMs: nowMs }));
    }
  }
  if (order.kind === "move") for (const node of order.nodes) agents.get(node)?.move();
  const victims = order.kind === "kill" ? order.nodes.flatMap((node) => agents.get(node) ?? []) : [];
  const killed = victims.map((agent) => {
    agent.kill();
    return { nodeId: agent.identity.nodeId, lastSentAtMs: agent.lastSentAtMs };
  });
  const all = [...agents.values()];
  const gapMs = order.kind === "report" ? order.gapMs : Number.POSITIVE_INFINITY;
  return {
    work: machines.figures,
    held: all.filter((agent) => agent.isHeld).length,
    reconnects: all.reduce((sum, agent) => sum + agent.reconnects, 0),
    killed,
    gaps: all.filter((it) => it.longestGapMs(nowMs) >= gapMs).map((it) => it.identity.nodeId),
  };
}

answerOrders<PacedOrder, PacedOutcome>(async (order) => carryOut(order));
