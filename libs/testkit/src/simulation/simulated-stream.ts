import type { SessionState, Watch } from "@rollcall/domain";
import type { SimulatedAgent } from "./simulated-agent.ts";
import type { SimulatedReplica } from "./simulated-replica.ts";

/** One heartbeat stream, with the state of its server's side. */
export interface SimulatedStream {
  readonly agent: SimulatedAgent;
  readonly replica: SimulatedReplica;
  state: SessionState;
}

/** All that a replica remembers of one node. */
export interface SimulatedHeld {
  readonly node: number;
  epoch: number;
  stream: SimulatedStream | null;
  watch: Watch<SimulatedHeld>;
  connection: "CONNECTED" | "DISCONNECTED";
  writtenConnection: "CONNECTED" | "DISCONNECTED";
  writtenHealth: Watch<SimulatedHeld>["health"];
  isRecordUncertain: boolean;
  asOfRevision: number;
  /** It was welcomed here since it is held. */
  wasHere: boolean;
  lastFrameAtMs: number | null;
}

/** What is remembered of a node to begin with. */
export function createHeld(
  node: number,
  health: SimulatedHeld["writtenHealth"],
  watch: (held: SimulatedHeld) => SimulatedHeld["watch"],
): SimulatedHeld {
  const held: Omit<SimulatedHeld, "watch"> = {
    node,
    epoch: 0,
    stream: null,
    connection: "DISCONNECTED",
    writtenConnection: "DISCONNECTED",
    writtenHealth: health,
    isRecordUncertain: false,
    asOfRevision: 0,
    wasHere: false,
    lastFrameAtMs: null,
  };
  // Both name each other.
  const whole = held as SimulatedHeld;
  whole.watch = watch(whole);
  return whole;
}
