import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Membership } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { SettingsTerms } from "../policy/node-terms.ts";
import type { Farewell } from "../replica/farewell.ts";
import type { HeldNode, NodeStream } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";

/** What a Welcome carries. */
export interface WelcomeFacts {
  /** Wall time, from which the agent measures its skew. */
  readonly wallMs: number;
  readonly membership: Membership;
  readonly settings: SettingsTerms;
  readonly clusterId: string;
  readonly nodeInfoWanted: boolean;
  /** Empty when the agent knows them. */
  readonly healthEndpoints: readonly string[];
}

/** A session that waits for the outcome of its Hello. */
export interface GreetedStream extends NodeStream {
  /** Whether it still waits for the outcome of its Hello. */
  readonly isOpening: boolean;
  /** The full method name in the Hello's proof. */
  readonly proofMethod: string;
  /** Welcome the agent. */
  welcome(node: HeldNode, facts: WelcomeFacts): void;
}

/** How a session ended. */
export type SessionEnd =
  | { readonly kind: "left"; readonly farewell: Farewell }
  | { readonly kind: "goodbye" }
  /** The transport is gone. */
  | { readonly kind: "gone"; readonly message: string };

/** The transport from a session to its agent: a stream, or the responses of calls. It makes frames and errors. */
export interface AgentLink {
  /** The peer as HOST:PORT. */
  readonly peer: string;
  /** See GreetedStream. */
  readonly proofMethod: string;
  /** Whether an old Beat is acknowledged again; if not, its call is refused. */
  readonly takesOldBeats: boolean;
  /** Whether frames wait for the agent to read, so that only necessary ones should be sent. */
  readonly isBehind: boolean;
  /** Whether the agent leaves too much unread. */
  readonly isTooSlow: boolean;
  sendWelcome(node: HeldNode, facts: WelcomeFacts): void;
  /** @param nextIntervalMs the new interval between beats; 0 for no change. */
  sendAck(sequence: number, nextIntervalMs: number): void;
  sendMembership(membership: Membership): void;
  sendSettings(settings: SettingsTerms): void;
  /** Ask the agent to move. False where it cannot be asked. */
  sendMove(farewell: Farewell): boolean;
  /** The session ended. `node` is null when it was never open. */
  ended(end: SessionEnd, node: HeldNode | null): void;
}

/** What a session needs of its process. */
export interface SessionHost {
  readonly replica: Replica;
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
  /** See HealthProcess. */
  readonly onBeat: ((nodeId: string, sequence: number) => void) | null;
  /** Submit a Hello: the session is later welcomed, or told to leave. Throws when it breaks the contract's rules. */
  onHello(stream: GreetedStream, hello: Hello, nonce: Uint8Array): void;
  /** Save a node's information. Throws when it breaks the contract's rules. */
  onNodeInfo(node: HeldNode, info: NodeInfo): void;
}
