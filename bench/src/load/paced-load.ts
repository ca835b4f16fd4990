import { BeatFrames } from "./beat-frames.ts";
import { comesAtMs } from "./coming-in.ts";
import { agentIdentity } from "./held-agent.ts";
import { answerOrders } from "./orders.ts";
import { PacedAgent, type PacedTerms } from "./paced-agent.ts";
import { PacedMachines, type WorkFigures } from "./paced-machines.ts";

/** What is ordered from this process. */
export type PacedOrder =
  /** Run the agents of these nodes from now on, as part of a fleet of so many. */
  | ({
      readonly kind: "run";
      readonly firstNode: number;
      readonly agents: number;
      readonly fleet: number;
      /** Whether their machines run work. */
      readonly runsWork?: boolean;
    } & PacedTerms)
  /** Let these agents die. */
  | { readonly kind: "kill"; readonly nodes: readonly number[] }
  /** Let those that were killed start again, as new processes. */
  | { readonly kind: "revive"; readonly nodes: readonly number[] }
  /** Let these agents leave their replica for the next. */
  | { readonly kind: "move"; readonly nodes: readonly number[] }
  /** Returns the state of the agents. */
  | { readonly kind: "report"; readonly gapMs: number };

/** The state of the agents. */
export interface PacedOutcome {
  /** Agents with an open session. */
  readonly held: number;
  /** Attempts that failed and streams that ended, since the process began. */
  readonly reconnects: number;
  /** Nodes whose own log shows a gap of at least the given length: judging them was right. */
  readonly gaps: readonly string[];
  /** What the machines of agents that run work have done. */
  readonly work: WorkFigures;
  /** Those that an order has killed, and the wall time of their last send. */
  readonly killed: readonly { readonly nodeId: string; readonly lastSentAtMs: number }[];
}

const LOOK_EVERY_MS = 20;
/**
 * So often an agent is looked at in each of its intervals, all of them in turn: a large fleet must not cost its
 * machine a core for looking alone.
 */
const LOOKS_AN_INTERVAL = 30;
/** At one time, and in all processes of the fleet together: what waits longer than an agent does is done in vain. */
const MOST_OPENING = 300;
const MOST_OPENING_OF_FLEET = 1_500;

const frames = new BeatFrames();
const machines = new PacedMachines();
const agents = new Map<number, PacedAgent>();
let terms: PacedTerms | null = null;
let looksATime = 0;
let mostOpening = MOST_OPENING;
let turn = agents.values();
const opening = new Set<PacedAgent>();

/** The next few agents, in turn. */
function* nextAgents(): Generator<PacedAgent> {
  for (let count = Math.min(looksATime, agents.size); count > 0; count -= 1) {
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
    if (looksATime === 0) setInterval(look, LOOK_EVERY_MS);
    looksATime = Math.ceil((agents.size * LOOKS_AN_INTERVAL * LOOK_EVERY_MS) / order.intervalMs);
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
