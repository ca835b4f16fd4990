import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { HeartbeatRequest, HeartbeatResponse, Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Clock, Logger } from "@rollcall/process";
import type { ClientAddress, StrangerLog } from "@rollcall/rpc";
import type { HeldNode, NodeStream } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import type { WelcomeFacts } from "./frames.ts";
import type { OutgoingLimits } from "./outgoing.ts";

/** A call of HealthService.Heartbeat. */
export type HeartbeatCall = ServerDuplexStream<HeartbeatRequest, HeartbeatResponse | Buffer>;

/** A session whose Hello is on its way to the record. */
export interface GreetedStream extends NodeStream {
  /** Whether it still waits for what becomes of its Hello. */
  readonly isOpening: boolean;
  /** The full name of the method that the Hello's proof names. */
  readonly proofMethod: string;
  /** Take the agent in. */
  welcome(node: HeldNode, facts: Omit<WelcomeFacts, "epoch">): void;
}

/** What a stream needs of the rest of its process. */
export interface StreamHost {
  readonly replica: Replica;
  readonly clock: Clock;
  readonly log: Logger;
  /** For streams that never had a session. */
  readonly strangers: StrangerLog;
  /** See HealthDeps. */
  readonly clientAddress: ClientAddress | undefined;
  readonly limits: StreamLimits;
  /** See HealthDeps. */
  readonly onBeat: ((nodeId: string, sequence: number) => void) | null;
  /** See HealthDeps. */
  readonly onWelcomed: ((peer: string) => void) | null;
  clusterId(): string;
  /**
   * Take a Hello to the record: the stream is welcomed or left later on. Throws when it breaks the contract's rules.
   */
  onHello(stream: GreetedStream, hello: Hello, nonce: Uint8Array): void;
  /** Keep what a node says about itself. Throws when it breaks the contract's rules. */
  onNodeInfo(node: HeldNode, info: NodeInfo): void;
}

export interface StreamLimits extends OutgoingLimits {
  /** How long a new stream may take to say hello. */
  readonly helloTimeoutMs: number;
}

export const DEFAULT_STREAM_LIMITS: StreamLimits = {
  helloTimeoutMs: 10_000,
  unreadTimeoutMs: 10_000,
  maxUnreadFrames: 256,
};
