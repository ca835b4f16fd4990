import { setTimeout as delay } from "node:timers/promises";
import { ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { BeatFrames } from "./beat-frames.ts";
import { type AgentIdentity, type AgentListener, agentIdentity, LiveAgent } from "./live-agent.ts";
import { answerOrders } from "./orders.ts";

/** An order from the benchmark to this process. */
export type HeartbeatOrder =
  /** Create the identities of this many agents in advance, so that their creation is not measured. */
  | { readonly kind: "prepare"; readonly agents: number }
  /**
   * Connect agents until this many are held, by default 200 at a time. Each agent runs the given number of
   * executions.
   */
  | {
      readonly kind: "hold";
      readonly port: number;
      readonly agents: number;
      readonly executions?: number;
      readonly atOnce?: number;
    }
  /**
   * Make each agent send the next Beat as soon as the previous one is acknowledged, until it has sent this many
   * Beats in total.
   */
  | { readonly kind: "beat"; readonly totalEach: number }
  /** Make each agent send the next Beat as soon as the previous one is acknowledged, for this long. */
  | { readonly kind: "beat-for"; readonly durationMs: number };

/** The result of an order. */
export interface HeartbeatOutcome {
  /** The number of agents that are connected now. */
  readonly held: number;
  /** The number of Beats acknowledged since the order arrived. */
  readonly acks: number;
  readonly elapsedMs: number;
  /** The number of streams that ended unexpectedly since the process started, and the reason of the last end. */
  readonly lost: number;
  readonly lastRefusal: string;
}

const CONNECTING_AT_ONCE = 200;
const WELCOME_LIMIT_MS = 30_000;
const JOIN_TRIES = 5;
const JOIN_PAUSE_MS = 1_000;
const BEATS_LIMIT_MS = 300_000;
/** The digest of all agents. They can share it, because a server only compares digests. */
const DIGEST = 0x1234_5678_9abc_def0n;

let frames = new BeatFrames();
let executions = 0;
const agents = new Map<number, LiveAgent>();
let identities: readonly AgentIdentity[] = [];
let acks = 0;
let lost = 0;
let lastRefusal = "";
let mayBeat: (agent: LiveAgent) => boolean = () => false;
let outstanding = 0;
let allAcknowledged: () => void = () => {};

const listener: AgentListener = {
  onAck(agent: LiveAgent): void {
    acks += 1;
    if (mayBeat(agent)) agent.beat();
    else settleOne();
  },
  onEnd(agent: LiveAgent, refusal: string): void {
    // Ignore the end if the stream was never open, because the caller then tries again.
    if (!agents.delete(agent.identity.index)) return;
    lost += 1;
    lastRefusal = refusal;
    if (agent.waits) settleOne();
  },
};

const acknowledged = new Map<LiveAgent, () => void>();
const workingListener: AgentListener = {
  ...listener,
  onWork: (agent, frame) => {
    if (frame.case !== "reportAck") return;
    acknowledged.get(agent)?.();
    acknowledged.delete(agent);
  },
};

/** Report the executions of an agent as running. Resolves once the store has the report. */
function report(agent: LiveAgent): Promise<void> {
  const observations = Array.from({ length: executions }, (_, index) => ({
    id: `${agent.identity.nodeId.replace("-", "")}x${index}`,
    state: ObservedState.READY,
    job: "bench",
    change: 1n,
  }));
  return new Promise((resolve) => {
    acknowledged.set(agent, resolve);
    agent.send({ case: "executionReport", value: { number: 1n, whole: true, digest: DIGEST, observations } });
  });
}

function settleOne(): void {
  outstanding -= 1;
  if (outstanding === 0) allAcknowledged();
}

function prepare(count: number): void {
  if (identities.length !== count) identities = Array.from({ length: count }, (_, index) => agentIdentity(index));
}

/** Connect all agents. Returns how long that took, excluding the creation of identities. */
async function hold(order: Extract<HeartbeatOrder, { readonly kind: "hold" }>): Promise<number> {
  const { port, atOnce = CONNECTING_AT_ONCE } = order;
  executions = order.executions ?? 0;
  if (executions > 0) frames = new BeatFrames(DIGEST);
  prepare(order.agents);
  const start = performance.now();
  const queue = identities.values();
  const connectInTurn = async (): Promise<void> => {
    for (const identity of queue) await join(identity, port);
  };
  await Promise.all(Array.from({ length: atOnce }, connectInTurn));
  return performance.now() - start;
}

/** Connect one agent. If the server sends it away, try again a limited number of times, like a real agent. */
async function join(identity: AgentIdentity, port: number): Promise<void> {
  for (let tries = 1; ; tries++) {
    const agent = new LiveAgent(identity, { port }, frames, executions > 0 ? workingListener : listener);
    try {
      await agent.open();
      await within(WELCOME_LIMIT_MS, agent.welcome, `no welcome for ${identity.nodeId}`);
      if (executions > 0) await within(WELCOME_LIMIT_MS, report(agent), `no ReportAck for ${identity.nodeId}`);
      agents.set(identity.index, agent);
      return;
    } catch (error) {
      agent.close();
      if (tries === JOIN_TRIES) throw error;
      await delay(JOIN_PAUSE_MS);
    }
  }
}

/** Let agents beat while `may` returns true. Returns how long it took until all Beats were acknowledged. */
async function beatWhile(may: (agent: LiveAgent) => boolean): Promise<number> {
  mayBeat = may;
  const start = performance.now();
  const beating = [...agents.values()].filter(may);
  if (beating.length === 0) return 0;
  outstanding = beating.length;
  const done = new Promise<void>((resolve) => {
    allAcknowledged = resolve;
  });
  for (const agent of beating) agent.beat();
  await within(BEATS_LIMIT_MS, done, "beats were not acknowledged");
  return performance.now() - start;
}

function within(limitMs: number, promise: Promise<void>, complaint: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${complaint} within ${limitMs} ms`)), limitMs);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

async function carryOut(order: HeartbeatOrder): Promise<number> {
  if (order.kind === "hold") return hold(order);
  if (order.kind === "prepare") {
    prepare(order.agents);
    return 0;
  }
  if (order.kind === "beat") return beatWhile((agent) => agent.beats < order.totalEach);
  const end = performance.now() + order.durationMs;
  return beatWhile(() => performance.now() < end);
}

answerOrders<HeartbeatOrder, HeartbeatOutcome>(async (order) => {
  acks = 0;
  const elapsedMs = await carryOut(order);
  return { held: agents.size, acks, elapsedMs, lost, lastRefusal };
});
