import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Farewell } from "../replica/farewell.ts";
import type { HeldNode } from "../replica/held-node.ts";
import { type AgentFrame, AgentSession } from "../session/agent-session.ts";
import { farewellFrom } from "../session/farewell-error.ts";
import type { AgentLink, SessionEnd } from "../session/session-host.ts";
import { nodeIdOf } from "./simulation-options.ts";
import type { StreamAgent, World, WorldProcess, WorldStream } from "./world.ts";

const NONCE = new Uint8Array(32);
const HELLO_WITHIN_MS = 10_000;

/** One heartbeat stream: the session at its server's end, and a network in place of gRPC. */
export class SimulatedStream implements AgentLink, WorldStream {
  readonly agent: StreamAgent;
  readonly process: WorldProcess;
  readonly peer: string;
  readonly proofMethod = "";
  readonly takesOldBeats = true;
  readonly carriesWork = false;
  readonly isBehind = false;
  readonly isTooSlow = false;
  readonly #world: World;
  #session: AgentSession | null = null;

  constructor(world: World, agent: StreamAgent, process: WorldProcess) {
    this.#world = world;
    this.agent = agent;
    this.process = process;
    this.peer = `agent-${agent.index}:1`;
  }

  /** Whether a frame of it has been received. */
  get isKnown(): boolean {
    return this.#session !== null;
  }

  // What the agent sends, as it arrives.

  hello(hello: Hello): void {
    this.#receive({ kind: "hello", hello });
  }

  goodbye(): void {
    this.#receive({ kind: "goodbye", isRestarting: false, reason: "" });
  }

  beat(sequence: number): void {
    const session = this.#opened();
    const { replica } = this.process.core;
    const node = replica.nodes.find(nodeIdOf(this.agent.index));
    const isOfNode = node?.stream === session;
    session.beat({ sequence, settingsGeneration: 1, agentTimeMs: 0n, executionsDigest: 0n });
    // The node was heard, whatever the replica does with the frame.
    if (isOfNode) this.process.observer.heard(this.agent.index, this.#world.schedule.nowMs);
  }

  gone(): void {
    this.#opened().gone("the stream broke");
  }

  // What the session sends.

  sendWelcome(): void {
    this.#send(() => this.agent.onWelcome(this));
  }

  sendAck(): void {
    this.#send(() => this.agent.onAck(this));
  }

  sendMembership(): void {}

  sendSettings(): void {}

  sendWork(): void {}

  sendMove(): boolean {
    this.#send(() => this.agent.onMove(this));
    return true;
  }

  ended(end: SessionEnd, _node: HeldNode | null): void {
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

  /** The server learns of a stream with its first frame. */
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
