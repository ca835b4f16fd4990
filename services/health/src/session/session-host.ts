import type { ExecutionReport, Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Membership } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { SettingsTerms } from "../policy/node-terms.ts";
import type { Farewell } from "../replica/farewell.ts";
import type { HeldNode, NodeStream } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import type { WorkFrame } from "../work/work-frames.ts";
import type { AnnouncedAuthorities, AuthorityFeed } from "./announced-authorities.ts";

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
  /** Whether the agent runs work. */
  readonly runsWork: boolean;
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
  /** Whether frames about work can be exchanged. */
  readonly carriesWork: boolean;
  /** Whether frames wait for the agent to read, so that only necessary ones should be sent. */
  readonly isBehind: boolean;
  /** Whether the agent leaves too much unread. */
  readonly isTooSlow: boolean;
  sendWelcome(node: HeldNode, facts: WelcomeFacts): void;
  /** @param nextIntervalMs the new interval between beats; 0 for no change. */
  sendAck(sequence: number, nextIntervalMs: number): void;
  sendMembership(membership: Membership): void;
  sendSettings(settings: SettingsTerms): void;
  sendWork(frame: WorkFrame): void;
  sendAuthorities(authorities: AnnouncedAuthorities): void;
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
  /** The executions of nodes; null where none are run. */
  readonly work: WorkHost | null;
  /** Authorities that agents should trust; null if none are announced. */
  readonly authorities: AuthorityFeed | null;
}

/** What a session tells of its node's executions. */
export interface WorkHost {
  /** The session of an agent that runs work is open. */
  opened(node: HeldNode): void;
  /** Take in a frame about work. Throws when it breaks the contract's rules. */
  receive(node: HeldNode, frame: AgentWorkFrame): void;
  /** The digest in a Beat differs from that of the last report: part of the hot path. */
  onDigest(node: HeldNode, digest: bigint): void;
  /** The agent has read what waited for it. */
  drained(node: HeldNode): void;
}

/** A frame about work, from an agent. */
export type AgentWorkFrame =
  | { readonly kind: "report"; readonly report: ExecutionReport }
  | { readonly kind: "want-specs"; readonly digests: readonly Uint8Array[] };
