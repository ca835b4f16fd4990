import { create } from "@bufbuild/protobuf";
import { HeartbeatResponseSchema, type Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  type AgentFrame,
  type AgentLink,
  AgentSession,
  type AgentWorkFrame,
  type Farewell,
  farewellFrom,
  type LiveNode,
  type SessionEnd,
  type WorkFrame,
  workFrameToProto,
} from "@rollcall/health/parts";
import { nodeIdOf } from "./simulation-options.ts";
import { WorkLane } from "./work-lane.ts";
import type { StreamAgent, World, WorldProcess, WorldStream } from "./world.ts";

const NONCE = new Uint8Array(32);
const HELLO_WITHIN_MS = 10_000;

/** One heartbeat stream: the server's session, over a simulated network instead of gRPC. */
export class SimulatedStream implements AgentLink, WorldStream {
  readonly agent: StreamAgent;
  readonly process: WorldProcess;
  readonly peer: string;
  readonly proofMethod = "";
  readonly takesOldBeats = true;
  readonly carriesWork: boolean;
  readonly isBehind = false;
  readonly isTooSlow = false;
  readonly #world: World;
  #session: AgentSession | null = null;
  readonly #down: WorkLane;
  readonly #up: WorkLane;

  constructor(world: World, agent: StreamAgent, process: WorldProcess) {
    this.#world = world;
    this.agent = agent;
    this.process = process;
    this.peer = `agent-${agent.index}:1`;
    this.carriesWork = world.work !== null;
    const { network, schedule } = world;
    const between = {
      schedule,
      delayMs: () => network.callDelayMs(),
      isCut: () => network.isCut(agent.index, process.slot),
    };
    this.#down = new WorkLane({ ...between, receiver: () => agent.readiness(this) });
    this.#up = new WorkLane({ ...between, receiver: () => (process.isAlive ? "ready" : "gone") });
  }

  /** Whether the server has received a frame of the stream. */
  get isKnown(): boolean {
    return this.#session !== null;
  }

  // The methods below are called when the agent's frames arrive.

  hello(hello: Hello): void {
    this.#receive({ kind: "hello", hello });
  }

  /** @param isRestarting whether the agent leaves executions running. */
  goodbye(isRestarting: boolean): void {
    this.#receive({ kind: "goodbye", isRestarting, reason: "" });
  }

  beat(sequence: number, executionsDigest: bigint): void {
    const session = this.#opened();
    const { replica } = this.process.core;
    const node = replica.nodes.find(nodeIdOf(this.agent.index));
    const isOfNode = node?.stream === session;
    session.beat({ sequence, settingsGeneration: 1, agentTimeMs: 0n, executionsDigest });
    // The frame is a sign of life even if the replica ignores it.
    if (isOfNode) this.process.observer.heard(this.agent.index, this.#world.schedule.nowMs);
  }

  /** Send a frame about work. These frames arrive in order. */
  work(frame: AgentWorkFrame): void {
    this.#up.send(() => this.#world.deliver(this.process, () => this.#receive({ kind: "work", work: frame })));
  }

  gone(): void {
    this.#opened().gone("the stream broke");
  }

  // The session calls the methods below.

  sendWelcome(): void {
    this.#send(() => this.agent.onWelcome(this));
  }

  sendAck(): void {
    this.#send(() => this.agent.onAck(this));
  }

  sendMembership(): void {}

  sendSettings(): void {}

  sendAuthorities(): void {}

  sendWork(frame: WorkFrame): void {
    const sent = workFrameToProto(frame);
    const { frame: received } = create(HeartbeatResponseSchema, { frame: sent as never });
    switch (received.case) {
      case "executions":
      case "spec":
      case "reportAck":
        this.#down.send(() => this.agent.onWork(this, received));
        return;
      default:
        throw new Error(`${received.case} is not a frame about work`);
    }
  }

  sendMove(): boolean {
    this.#send(() => this.agent.onMove(this));
    return true;
  }

  ended(end: SessionEnd, _node: LiveNode | null): void {
    if (end.kind !== "left") return;
    const { retryAfterMs = 0 }: Farewell = end.farewell;
    this.#send(() => this.agent.onEnd(this, retryAfterMs));
  }

  #receive(frame: AgentFrame): void {
    const session = this.#opened();
    try {
      session.receive(frame);
    } catch (error) {
      session.fail(farewellFrom(error));
    }
  }

  /** The server creates the session when the first frame arrives. */
  #opened(): AgentSession {
    this.#session ??= new AgentSession(this, this.process.host, {
      firstSequence: 0,
      nonce: NONCE,
      helloWithinMs: HELLO_WITHIN_MS,
    });
    return this.#session;
  }

  #send(deliver: () => void): void {
    this.#world.network.sendFrame(this.agent.index, this.process.slot, deliver);
  }
}
