import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Membership } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { SettingsTerms } from "../policy/node-terms.ts";
import type { Farewell } from "../replica/farewell.ts";
import type { HeldNode, NodeStream } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";

/** What an agent is told when it is taken in. */
export interface WelcomeFacts {
  /** Wall time, for the agent to measure its skew. */
  readonly wallMs: number;
  readonly membership: Membership;
  readonly settings: SettingsTerms;
  readonly clusterId: string;
  readonly nodeInfoWanted: boolean;
  /** Empty: as the agent knows them. */
  readonly healthEndpoints: readonly string[];
}

/** A session whose Hello is on its way to the record. */
export interface GreetedStream extends NodeStream {
  /** Whether it still waits for what becomes of its Hello. */
  readonly isOpening: boolean;
  /** The full name of the method that the Hello's proof names. */
  readonly proofMethod: string;
  /** Take the agent in. */
  welcome(node: HeldNode, facts: WelcomeFacts): void;
}

/** How a session ended. */
export type SessionEnd =
  | { readonly kind: "left"; readonly farewell: Farewell }
  | { readonly kind: "goodbye" }
  /** The way to the agent is gone. */
  | { readonly kind: "gone"; readonly message: string };

/** The way from a session to its agent: a stream, or the answers of calls. Frames and errors are made there. */
export interface AgentLink {
  /** The peer as HOST:PORT. */
  readonly peer: string;
  /** See GreetedStream. */
  readonly proofMethod: string;
  /** Whether a Beat that was received before is acknowledged again; where not, its call is refused. */
  readonly takesOldBeats: boolean;
  /** Whether frames wait for the agent to read, so that more should be sent only if they must. */
  readonly isBehind: boolean;
  /** Whether the agent leaves too much unread. */
  readonly isTooSlow: boolean;
  sendWelcome(node: HeldNode, facts: WelcomeFacts): void;
  /** @param nextIntervalMs the interval to beat at from now on; 0 leaves it as it is. */
  sendAck(sequence: number, nextIntervalMs: number): void;
  sendMembership(membership: Membership): void;
  sendSettings(settings: SettingsTerms): void;
  /** Ask the agent to move. False where it cannot be asked. */
  sendMove(farewell: Farewell): boolean;
  /** The session is over. `node` is null when it was never open. */
  ended(end: SessionEnd, node: HeldNode | null): void;
}

/** What a session needs of the rest of its process. */
export interface SessionHost {
  readonly replica: Replica;
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
  /** See HealthProcess. */
  readonly onBeat: ((nodeId: string, sequence: number) => void) | null;
  /**
   * Take a Hello to the record: the session is welcomed or left later on. Throws when it breaks the contract's rules.
   */
  onHello(stream: GreetedStream, hello: Hello, nonce: Uint8Array): void;
  /** Keep what a node says about itself. Throws when it breaks the contract's rules. */
  onNodeInfo(node: HeldNode, info: NodeInfo): void;
}
