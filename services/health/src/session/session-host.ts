import type { ExecutionReport, Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Membership } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { Farewell } from "../replica/farewell.ts";
import type { LiveNode, NodeStream } from "../replica/live-node.ts";
import type { SettingsTerms } from "../replica/node-terms.ts";
import type { Replica } from "../replica/replica.ts";
import type { WorkFrame } from "../replica/work-frames.ts";
import type { AnnouncedAuthorities, AuthorityFeed } from "./announced-authorities.ts";

/** What a Welcome carries. */
export interface WelcomeFacts {
  /** The server's wall time, from which the agent measures its clock skew. */
  readonly wallMs: number;
  readonly membership: Membership;
  readonly settings: SettingsTerms;
  readonly clusterId: string;
  readonly nodeInfoWanted: boolean;
  /** The endpoints of health replicas; empty when the agent already knows them. */
  readonly healthEndpoints: readonly string[];
  /** Whether the agent runs work. */
  readonly runsWork: boolean;
}

/** A session that waits for the outcome of its Hello. */
export interface GreetedStream extends NodeStream {
  /** Whether the session still waits for the outcome of its Hello. */
  readonly isOpening: boolean;
  /** The full method name in the Hello's proof. */
  readonly proofMethod: string;
  /** Welcome the agent. */
  welcome(node: LiveNode, facts: WelcomeFacts): void;
}

export type SessionEnd =
  | { readonly kind: "left"; readonly farewell: Farewell }
  | { readonly kind: "goodbye" }
  /** The transport has ended. */
  | { readonly kind: "gone"; readonly message: string };

/** The transport from a session to its agent: a stream, or the responses of calls. It encodes frames and errors. */
export interface AgentLink {
  /** The peer as HOST:PORT. */
  readonly peer: string;
  /** See GreetedStream. */
  readonly proofMethod: string;
  /** Whether an old Beat is acknowledged again; if not, its call is refused. */
  readonly takesOldBeats: boolean;
  /** Whether frames about work can be exchanged. */
  readonly carriesWork: boolean;
  /**
   * Whether sent frames wait because the agent does not read. While they wait, only necessary frames should be
   * sent.
   */
  readonly isBehind: boolean;
  /** Whether the agent has left too many frames unread. */
  readonly isTooSlow: boolean;
  sendWelcome(node: LiveNode, facts: WelcomeFacts): void;
  /** @param nextIntervalMs the new interval between heartbeats; 0 for no change. */
  sendAck(sequence: number, nextIntervalMs: number): void;
  sendMembership(membership: Membership): void;
  sendSettings(settings: SettingsTerms): void;
  sendWork(frame: WorkFrame): void;
  sendAuthorities(authorities: AnnouncedAuthorities): void;
  /** Ask the agent to move. Returns false if this transport cannot ask. */
  sendMove(farewell: Farewell): boolean;
  /** The session ended. `node` is null when it was never open. */
  ended(end: SessionEnd, node: LiveNode | null): void;
}

/** The dependencies of a session. */
export interface SessionHost {
  readonly replica: Replica;
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
  /** See HealthProcess. */
  readonly onBeat: ((nodeId: string, sequence: number) => void) | null;
  /** Submit a Hello. The session is welcomed or ended later. Throws when the Hello breaks the contract's rules. */
  onHello(stream: GreetedStream, hello: Hello, nonce: Uint8Array): void;
  /** Save a node's information. Throws when it breaks the contract's rules. */
  onNodeInfo(node: LiveNode, info: NodeInfo): void;
  /** Manages the executions of nodes; null when this process manages none. */
  readonly work: WorkHost | null;
  /** The authorities that agents should trust; null when none are announced. */
  readonly authorities: AuthorityFeed | null;
}

/** Calls from a session about its node's executions. */
export interface WorkHost {
  /** Called when the session of an agent that runs work is open. */
  opened(node: LiveNode): void;
  /** Handle a frame about work. Throws when it breaks the contract's rules. */
  receive(node: LiveNode, frame: AgentWorkFrame): void;
  /** Called when the digest in a Beat differs from that of the last report. Part of the hot path. */
  onDigest(node: LiveNode, digest: bigint): void;
  /** Called when the agent has read all waiting frames. */
  drained(node: LiveNode): void;
}

/** A frame about work, from an agent. */
export type AgentWorkFrame =
  | { readonly kind: "report"; readonly report: ExecutionReport }
  | { readonly kind: "want-specs"; readonly digests: readonly Uint8Array[] };
