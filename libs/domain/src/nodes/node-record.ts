import type { Loss } from "../brake/reaction.ts";
import type { Hardware } from "../conditions/hardware.ts";
import type { Trouble } from "../conditions/hardware-conditions.ts";
import type { Json } from "../events/events.ts";
import type { OutageHistory } from "../health/flapping.ts";
import type { Label } from "../labels/labels.ts";
import type { AgentPair } from "../membership/duplicate-identity.ts";
import type { Connection, Health, Hold, Mark, Membership, NodeType, Scheduling } from "../states.ts";
import type { SuspectedReboot } from "./session-opening.ts";

/** What a node says about itself: a NodeInfo as protobuf JSON. */
export type JsonInfo = { readonly [key: string]: Json };

/** The figures of a node's information that listings sort and add up. */
export interface InfoSummary {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

/** A report of a node about itself. */
export interface InfoReport {
  readonly info: JsonInfo;
  /** Equal digests mean equal reports, labels included. */
  readonly digest: string;
  readonly summary: InfoSummary;
  /** Replaces all labels of the agent tier. */
  readonly agentLabels: Readonly<Record<string, string>>;
}

/** How a node joined. */
export interface NodeJoining {
  /** The join token that admitted it; null without one. It may have been forgotten since. */
  readonly tokenId: string | null;
  /** Whether it is removed when it has left. */
  readonly ephemeral: boolean;
  /** Whether it joined without a token while that was warned of. */
  readonly withoutToken: boolean;
  /** The address from which it registered then, without a port; null where that was not kept. */
  readonly from: string | null;
}

/** All that the record holds of one node. */
export interface NodeRecord {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** What is shown: see shownHealth(). */
  readonly health: Health;
  /** As detected, without an operator's mark. */
  readonly detectedHealth: Health;
  readonly mark: Mark | null;
  readonly holds: readonly Hold[];
  /** When a drain or a hold for flapping was lifted last; null for never. */
  readonly disturbedAtMs: number | null;
  readonly scheduling: Scheduling;
  readonly info: JsonInfo | null;
  readonly infoDigest: string | null;
  readonly summary: InfoSummary;
  /** Every tier, sorted by key, then tier. */
  readonly labels: readonly Label[];
  /** Null for a node without a key (orchestrators). */
  readonly keyFingerprint: string | null;
  /** Since when that has been its key; null without one. */
  readonly keySinceMs: number | null;
  /** The key that the node has offered and not used yet. */
  readonly nextKeyFingerprint: string | null;
  /** Since when an operator has required the node to rotate its key; null when none does. */
  readonly keyRotationRequiredSinceMs: number | null;
  readonly joining: NodeJoining;
  /** Changes with every write of registry or admin to this node, and is unique even after a delete. */
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** The hardware that was approved, or accepted later; null as long as the node had reported none. */
  readonly approvedHardware: Hardware | null;
  /** What is missing of it. */
  readonly missingHardware: readonly Trouble[];
  /** What is wrong with its GPUs according to its samples. */
  readonly gpuTroubles: readonly Trouble[];
  /** Its recent outages, and since when it flaps. */
  readonly history: OutageHistory;
  /** When it rebooted unexpectedly, if that was recently. */
  readonly rebootedAtMs: number | null;
  /** See OpeningPlan. */
  readonly suspectedReboot: SuspectedReboot | null;
  /** The two agents that use its identity in turns; null for one agent. */
  readonly duplicate: AgentPair | null;
  readonly loss: Loss;
  readonly session: {
    readonly epoch: number;
    /** The replica that holds the session; null for a node that never connected. */
    readonly replicaId: string | null;
    /** The peer as `host:port`, or null. */
    readonly address: string | null;
  };
}
