import {
  type Connection,
  connectionAfter,
  evidenceFacts,
  type GpuState,
  type Health,
  healthAfter,
  type Intervals,
  type Membership,
  type SilenceEvidence,
  type Stated,
  type Timing,
} from "@rollcall/domain";
import type { OwnedSession, StateChange, Transition } from "@rollcall/store";
import type { SampleRing } from "../samples/sample-ring.ts";
import type { Farewell } from "./farewell.ts";
import type { LiveWork } from "./live-work.ts";
import type { NodeTerms, SettingsTerms } from "./node-terms.ts";
import type { WorkFrame } from "./work-frames.ts";

/** A node's open stream, as its replica uses it. */
export interface NodeStream {
  /** The peer as HOST:PORT. */
  readonly peer: string;
  sendMembership(membership: Membership): void;
  sendSettings(settings: SettingsTerms): void;
  /** Send the agent its interval between heartbeats, in milliseconds. */
  sendPace(intervalMs: number): void;
  /**
   * Ask the agent to open a stream elsewhere and then leave this one. Returns false for a unary session and for a
   * session that is not open.
   */
  askMove(farewell: Farewell): boolean;
  /** Send a frame about work. Returns false when the agent has to read first, or the session is not open. */
  sendWork(frame: WorkFrame): boolean;
  /** End the stream with a farewell. The stream does not report its end back. */
  leave(farewell: Farewell): void;
}

/** The state of one node that a replica holds, with or without a stream. Only `Replica` changes it. */
export interface LiveNode {
  readonly id: string;
  epoch: number;
  /** The only stream with the current epoch; null while there is none. */
  stream: NodeStream | null;
  /** The detector's state: the node's health, and when the node was last heard from. */
  timing: Timing<LiveNode>;
  connection: Connection;
  /** The detected health, without an operator's mark. */
  health: Health;
  /** The last state known to be in the store. */
  writtenConnection: Connection;
  writtenHealth: Health;
  /**
   * Whether a write got no response and may have been committed: the store has either the known state or the written
   * one.
   */
  isStoreUncertain: boolean;
  /** The node's membership; null until it has been read from the store. */
  membership: Membership | null;
  /** The node's state is known up to this revision; older events are ignored. */
  asOfRevision: bigint;
  /** See SuccessfulOpening.openedRevision; 0 for an adopted node. */
  openedRevision: bigint;
  /** Digest of the stored NodeInfo; null when unknown. */
  infoDigest: string | null;
  /** The key that verified the last Hello; null before the first Hello on this replica. */
  publicKey: Uint8Array | null;
  /** The node's policy, thresholds and settings. */
  readonly terms: NodeTerms;
  /** The intervals that were sent to the agent; null before any were sent. */
  intervals: Intervals | null;
  /** When this replica received the last frame, by the real monotonic clock; null for none. */
  lastFrameAtMs: number | null;
  /** The instance id of the agent that had the last session, see Hello; "" for none. */
  instanceId: string;
  /** Whether two agents are known to use the node's identity. */
  isDuplicated: boolean;
  /**
   * Until when another agent may have executions that this session's agent lacks, by the real monotonic clock; see
   * Replica.isContested().
   */
  contestedUntilMs: number;
  /** How far the agent's clock is ahead of this process's, in milliseconds; null when unknown. For display. */
  clockSkewMs: number | null;
  samples: SampleRing | null;
  /** The state of the node's GPUs, from its samples; empty without GPUs. */
  gpus: readonly GpuState[];
  /** How much is known about the GPUs. */
  gpuKnowledge: GpuKnowledge;
  /** The evidence for the current health; null when the reason needs none. */
  evidence: SilenceEvidence | null;
  /**
   * When silence last made this replica declare the node UNHEALTHY or UNKNOWN, by the real monotonic clock; null for
   * never.
   */
  declaredAtMs: number | null;
  /** The session's knowledge about the node's executions; null for an agent that runs no work. */
  work: LiveWork | null;
}

/**
 * How much a replica knows about a node's GPUs: the number of samples since it started to hold the node, counted only
 * until there are enough to overrule the store, and whether the stored troubles were read.
 */
export interface GpuKnowledge {
  readonly samples: number;
  readonly isSeeded: boolean;
}

/** The initial knowledge about a node's GPUs: none. */
const NO_GPU_KNOWLEDGE: GpuKnowledge = { samples: 0, isSeeded: false };

/** The empty list that all nodes without GPUs share. */
const NO_GPUS: readonly GpuState[] = [];

/** Create the state of a node. `track` registers it with the detector. */
export function createLiveNode(
  row: Pick<OwnedSession, "nodeId" | "detectedHealth" | "connection">,
  terms: NodeTerms,
  track: (node: LiveNode) => Timing<LiveNode>,
): LiveNode {
  const { nodeId: id, detectedHealth: health, connection } = row;
  const node: Omit<LiveNode, "timing"> = {
    id,
    epoch: 0,
    stream: null,
    connection,
    health,
    writtenConnection: connection,
    writtenHealth: health,
    isStoreUncertain: false,
    membership: null,
    asOfRevision: 0n,
    openedRevision: 0n,
    infoDigest: null,
    publicKey: null,
    terms,
    intervals: null,
    lastFrameAtMs: null,
    instanceId: "",
    isDuplicated: false,
    contestedUntilMs: 0,
    clockSkewMs: null,
    samples: null,
    gpus: NO_GPUS,
    gpuKnowledge: NO_GPU_KNOWLEDGE,
    evidence: null,
    declaredAtMs: null,
    work: null,
  };
  // Node and timing refer to each other, so the node is incomplete until it is returned.
  const held = node as LiveNode;
  held.timing = track(held);
  return held;
}

/** The states of a node after its agent's goodbye, with the agent's reason if it gave one. */
export function statesAfterGoodbye(
  by: { readonly actor: string; readonly atMs: number },
  reason: string,
): Pick<LiveNode, "connection" | "health" | "evidence"> {
  const connection = connectionAfter("goodbye", by);
  const health = healthAfter({ kind: "goodbye" }, by);
  const said = reason === "" ? "" : `: ${reason}`;
  return {
    connection: { ...connection, message: `${connection.message}${said}` },
    health: { ...health, message: `${health.message}${said}` },
    evidence: null,
  };
}

/** A node's transition that the store may lack; null when the store certainly has the current state. */
export function unwrittenOf(node: LiveNode): Transition | null {
  const { isStoreUncertain } = node;
  const connectionDiffers = isStoreUncertain || !isSameState(node.connection, node.writtenConnection);
  const healthDiffers = isStoreUncertain || !isSameState(node.health, node.writtenHealth);
  if (!connectionDiffers && !healthDiffers) return null;
  return {
    nodeId: node.id,
    epoch: node.epoch,
    ...(connectionDiffers ? { connection: toChange(node.connection) } : {}),
    ...(healthDiffers ? { health: { ...toChange(node.health), ...evidenceOf(node) } } : {}),
  };
}

function evidenceOf({ evidence }: LiveNode) {
  return evidence === null ? {} : { evidence: evidenceFacts(evidence) };
}

/** Ignores times and messages, because leaving a state and entering it again is not a change. */
function isSameState(left: Stated<string>, right: Stated<string>): boolean {
  return left.state === right.state && left.reason === right.reason;
}

function toChange<S extends string>({ state, reason, message, actor }: Stated<S>): StateChange<S> {
  return { state, reason, message, actor };
}
