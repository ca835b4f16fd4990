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
  type Watch,
} from "@rollcall/domain";
import type { OwnedSession, StateChange, Transition } from "@rollcall/store";
import type { NodeTerms, SettingsTerms } from "../policy/node-terms.ts";
import type { Farewell } from "./farewell.ts";
import type { SampleRing } from "./sample-ring.ts";

/** A node's open stream as its replica sees it. */
export interface NodeStream {
  /** The peer as HOST:PORT. */
  readonly peer: string;
  /** Tell the agent what was decided about it. */
  sendMembership(membership: Membership): void;
  /** Tell the agent what to keep to. */
  sendSettings(settings: SettingsTerms): void;
  /** Tell the agent to beat at this interval from now on, in milliseconds. */
  sendPace(intervalMs: number): void;
  /**
   * Ask the agent to open a stream elsewhere and to leave this one then. False where that is not possible: by calls, or
   * not open.
   */
  askMove(farewell: Farewell): boolean;
  /** Say why, and end. The stream does not report its end back. */
  leave(farewell: Farewell): void;
}

/** All that a replica remembers of one node that it holds, with or without a stream. Changed by `Replica` alone. */
export interface HeldNode {
  readonly id: string;
  epoch: number;
  /** The only stream whose epoch is current; null while there is none. */
  stream: NodeStream | null;
  /** Where the detector keeps the node's health and when it was last heard. */
  watch: Watch<HeldNode>;
  connection: Connection;
  /** As detected, without an operator's mark. */
  health: Health;
  /** The last states that are known to be in the record. */
  writtenConnection: Connection;
  writtenHealth: Health;
  /**
   * A write was not answered, and may have been committed: the record has what was known, or what was to be written.
   */
  isRecordUncertain: boolean;
  /** Null until a session of this replica has told it. */
  membership: Membership | null;
  /** What is known of the node is of this revision at least; older events say nothing new. */
  asOfRevision: bigint;
  /** Digest of the NodeInfo that the record has; null when that is not known. */
  infoDigest: string | null;
  /** The key that the last Hello was checked with; null until there was one here. */
  publicKey: Uint8Array | null;
  /** What the node is to keep to. */
  readonly terms: NodeTerms;
  /** What the agent was told to keep to; null until it was. */
  intervals: Intervals | null;
  /** When the last frame was received, by the real monotonic clock; null when none was, by this replica. */
  lastFrameAtMs: number | null;
  /**
   * By how much the agent's clock is ahead of this process's, in milliseconds; null when it was not told. For display.
   */
  clockSkewMs: number | null;
  samples: SampleRing | null;
  /** What samples say of its GPUs; empty for a node that has none. */
  gpus: readonly GpuState[];
  /** How far these can be judged. */
  gpuKnowledge: GpuKnowledge;
  /** What its present health was concluded from; null where the reason says all. */
  evidence: SilenceEvidence | null;
  /** When silence last made it UNHEALTHY or UNKNOWN, by the real monotonic clock; null when it never did here. */
  declaredAtMs: number | null;
}

/**
 * Samples received since this replica holds the node, as far as they count, and whether what was recorded before was
 * taken in.
 */
export interface GpuKnowledge {
  readonly samples: number;
  readonly isSeeded: boolean;
}

/** What is known of the GPUs of a node that begins to be held. */
const NO_GPU_KNOWLEDGE: GpuKnowledge = { samples: 0, isSeeded: false };

/** One for all nodes that have none. */
const NO_GPUS: readonly GpuState[] = [];

/** What is remembered of a node to begin with. `watch` has the detector watch it. */
export function createHeldNode(
  row: Pick<OwnedSession, "nodeId" | "detectedHealth" | "connection">,
  terms: NodeTerms,
  watch: (node: HeldNode) => Watch<HeldNode>,
): HeldNode {
  const { nodeId: id, detectedHealth: health, connection } = row;
  const node: Omit<HeldNode, "watch"> = {
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
    infoDigest: null,
    publicKey: null,
    terms,
    intervals: null,
    lastFrameAtMs: null,
    clockSkewMs: null,
    samples: null,
    gpus: NO_GPUS,
    gpuKnowledge: NO_GPU_KNOWLEDGE,
    evidence: null,
    declaredAtMs: null,
  };
  // Node and watch name each other; nobody sees the node before it is whole.
  const held = node as HeldNode;
  held.watch = watch(held);
  return held;
}

/** What a node is after its agent said goodbye, in the agent's own words as far as it gave any. */
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

/** What the record lacks of a node, or may lack; null when it certainly has everything. */
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
    flappingHoldMs: node.terms.resolved.policy.flappingHoldMs,
  };
}

function evidenceOf({ evidence }: HeldNode) {
  return evidence === null ? {} : { evidence: evidenceFacts(evidence) };
}

/** Times and texts are not compared: a state that was left and entered again meanwhile is no change. */
function isSameState(left: Stated<string>, right: Stated<string>): boolean {
  return left.state === right.state && left.reason === right.reason;
}

function toChange<S extends string>({ state, reason, message, actor }: Stated<S>): StateChange<S> {
  return { state, reason, message, actor };
}
