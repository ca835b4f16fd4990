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
import type { NodeTerms, SettingsTerms } from "../policy/node-terms.ts";
import type { HeldWork } from "../work/held-work.ts";
import type { WorkFrame } from "../work/work-frames.ts";
import type { Farewell } from "./farewell.ts";
import type { SampleRing } from "./sample-ring.ts";

/** A node's open stream as its replica sees it. */
export interface NodeStream {
  /** The peer as HOST:PORT. */
  readonly peer: string;
  /** Send the agent its membership. */
  sendMembership(membership: Membership): void;
  /** Send the agent its settings. */
  sendSettings(settings: SettingsTerms): void;
  /** Send the agent its interval between heartbeats, in milliseconds. */
  sendPace(intervalMs: number): void;
  /**
   * Ask the agent to open a stream elsewhere and then leave this one. False for a session by calls, or one that is not
   * open.
   */
  askMove(farewell: Farewell): boolean;
  /** Send a frame about work. False when the agent has to read first, or the session is not open. */
  sendWork(frame: WorkFrame): boolean;
  /** End the stream and say why. The stream does not report its end back. */
  leave(farewell: Farewell): void;
}

/** The state of one node that a replica holds, with or without a stream. Only `Replica` changes it. */
export interface HeldNode {
  readonly id: string;
  epoch: number;
  /** The only stream whose epoch is current; null while there is none. */
  stream: NodeStream | null;
  /** The detector's state: the node's health, and when it was last heard. */
  timing: Timing<HeldNode>;
  connection: Connection;
  /** As detected, without an operator's mark. */
  health: Health;
  /** The last state known to be in the record. */
  writtenConnection: Connection;
  writtenHealth: Health;
  /**
   * A write was not answered, and may have been committed: the record has either the known state or the written one.
   */
  isRecordUncertain: boolean;
  /** Null until a session here has read it. */
  membership: Membership | null;
  /** The revision up to which the node's state is known; older events are ignored. */
  asOfRevision: bigint;
  /** See SuccessfulOpening; 0 for a node that was adopted. */
  openedRevision: bigint;
  /** Digest of the recorded NodeInfo; null when unknown. */
  infoDigest: string | null;
  /** The key that verified the last Hello; null before the first one here. */
  publicKey: Uint8Array | null;
  /** The node's policy, thresholds and settings. */
  readonly terms: NodeTerms;
  /** The intervals that were sent to the agent; null before. */
  intervals: Intervals | null;
  /** When this replica received the last frame, by the real monotonic clock; null for none. */
  lastFrameAtMs: number | null;
  /** Of the agent of its last session, see Hello; "" for none. */
  instanceId: string;
  /** Whether two agents are known to use its identity. */
  isDuplicated: boolean;
  /**
   * Until when another agent may have executions that this session's lacks, by the real monotonic clock; see
   * Replica.isContested().
   */
  contestedUntilMs: number;
  /** How far the agent's clock is ahead of this process's, in milliseconds; null when unknown. For display. */
  clockSkewMs: number | null;
  samples: SampleRing | null;
  /** The state of its GPUs by its samples; empty without GPUs. */
  gpus: readonly GpuState[];
  /** How much is known about them. */
  gpuKnowledge: GpuKnowledge;
  /** The evidence of its present health; null where the reason says all. */
  evidence: SilenceEvidence | null;
  /** When silence last made it UNHEALTHY or UNKNOWN here, by the real monotonic clock; null for never. */
  declaredAtMs: number | null;
  /** What its session knows of its executions; null for an agent that runs no work. */
  work: HeldWork | null;
}

/**
 * How many samples arrived since this replica holds the node, as far as that matters, and whether the recorded troubles
 * were read.
 */
export interface GpuKnowledge {
  readonly samples: number;
  readonly isSeeded: boolean;
}

/** At the beginning nothing is known. */
const NO_GPU_KNOWLEDGE: GpuKnowledge = { samples: 0, isSeeded: false };

/** Shared by all nodes without GPUs. */
const NO_GPUS: readonly GpuState[] = [];

/** Create the state of a node. `track` registers it with the detector. */
export function createHeldNode(
  row: Pick<OwnedSession, "nodeId" | "detectedHealth" | "connection">,
  terms: NodeTerms,
  track: (node: HeldNode) => Timing<HeldNode>,
): HeldNode {
  const { nodeId: id, detectedHealth: health, connection } = row;
  const node: Omit<HeldNode, "timing"> = {
    id,
    epoch: 0,
    stream: null,
    connection,
    health,
    writtenConnection: connection,
    writtenHealth: health,
    isRecordUncertain: false,
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
  // Node and timing refer to each other; the node is complete before it is returned.
  const held = node as HeldNode;
  held.timing = track(held);
  return held;
}

/** The states of a node after its agent's goodbye, with the agent's reason if it gave one. */
export function statesAfterGoodbye(
  by: { readonly actor: string; readonly atMs: number },
  reason: string,
): Pick<HeldNode, "connection" | "health" | "evidence"> {
  const connection = connectionAfter("goodbye", by);
  const health = healthAfter({ kind: "goodbye" }, by);
  const said = reason === "" ? "" : `: ${reason}`;
  return {
    connection: { ...connection, message: `${connection.message}${said}` },
    health: { ...health, message: `${health.message}${said}` },
    evidence: null,
  };
}

/** What the record may lack of a node; null when it is certainly complete. */
export function unwrittenOf(node: HeldNode): Transition | null {
  const { isRecordUncertain } = node;
  const connectionDiffers = isRecordUncertain || !isSameState(node.connection, node.writtenConnection);
  const healthDiffers = isRecordUncertain || !isSameState(node.health, node.writtenHealth);
  if (!connectionDiffers && !healthDiffers) return null;
  return {
    nodeId: node.id,
    epoch: node.epoch,
    ...(connectionDiffers ? { connection: toChange(node.connection) } : {}),
    ...(healthDiffers ? { health: { ...toChange(node.health), ...evidenceOf(node) } } : {}),
  };
}

function evidenceOf({ evidence }: HeldNode) {
  return evidence === null ? {} : { evidence: evidenceFacts(evidence) };
}

/** Times and texts are not compared: a state that was left and entered again is not a change. */
function isSameState(left: Stated<string>, right: Stated<string>): boolean {
  return left.state === right.state && left.reason === right.reason;
}

function toChange<S extends string>({ state, reason, message, actor }: Stated<S>): StateChange<S> {
  return { state, reason, message, actor };
}
