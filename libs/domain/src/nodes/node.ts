import type { Loss } from "../brake/reaction.ts";
import type { Hardware } from "../conditions/hardware.ts";
import type { Trouble } from "../conditions/hardware-conditions.ts";
import type { Json } from "../events/events.ts";
import type { OutageHistory } from "../health/flapping.ts";
import type { Label } from "../labels/labels.ts";
import type { AgentPair } from "../membership/duplicate-identity.ts";
import type { Connection, Health, Hold, Mark, Membership, NodeType, Scheduling } from "../states.ts";
import type { SuspectedReboot } from "./session-opening.ts";

/** A node's information about itself: a NodeInfo as protobuf JSON. */
export type JsonInfo = { readonly [key: string]: Json };

/** The amounts in a node's information that listings sort by and add up. */
export interface InfoSummary {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

/** A node's report with its information. */
export interface InfoReport {
  readonly info: JsonInfo;
  /** The digest of the report. Equal digests mean equal reports, including labels. */
  readonly digest: string;
  readonly summary: InfoSummary;
  /** The new labels of the agent tier. They replace the previous ones. */
  readonly agentLabels: Readonly<Record<string, string>>;
}

/** How a node joined. */
export interface NodeJoining {
  /**
   * The id of the join token that admitted the node; null for none. The token may have been deleted
   * since.
   */
  readonly tokenId: string | null;
  /** Whether the node is deleted soon after it leaves. */
  readonly ephemeral: boolean;
  /** Whether the node joined without a token while join tokens were enforced with "warn". */
  readonly withoutToken: boolean;
  /** The address that the node registered from, without a port; null if unknown. */
  readonly from: string | null;
}

/** All that the store knows about one node. */
export interface Node {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** The health to show: see shownHealth(). */
  readonly health: Health;
  /** The health that the failure detector decided, without an operator's mark. */
  readonly detectedHealth: Health;
  readonly mark: Mark | null;
  readonly holds: readonly Hold[];
  /** When a drain or a FLAPPING hold was last removed; null for never. */
  readonly disturbedAtMs: number | null;
  readonly scheduling: Scheduling;
  readonly info: JsonInfo | null;
  readonly infoDigest: string | null;
  readonly summary: InfoSummary;
  /** Labels of every tier, sorted by key, then tier. */
  readonly labels: readonly Label[];
  /** The fingerprint of the node's key; null if the node has none, like control-plane processes. */
  readonly keyFingerprint: string | null;
  /** When the node got this key; null if it has none. */
  readonly keySinceMs: number | null;
  /** The key that the node has offered but not used yet; null for none. */
  readonly nextKeyFingerprint: string | null;
  /** When an operator required the node to rotate its key; null if no rotation is required. */
  readonly keyRotationRequiredSinceMs: number | null;
  readonly joining: NodeJoining;
  /**
   * Changes whenever the registry or the admin service writes to this node. The etag is unique, even
   * after the node is deleted and created again.
   */
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /**
   * The hardware that was approved with the node, or accepted later; null while the node has reported
   * none.
   */
  readonly approvedHardware: Hardware | null;
  /** Hardware that was approved and is now missing. */
  readonly missingHardware: readonly Trouble[];
  /** Troubles with the node's GPUs, from samples. */
  readonly gpuTroubles: readonly Trouble[];
  /** The node's recent outages, and whether they count as flapping. */
  readonly history: OutageHistory;
  /** When the node last rebooted unexpectedly; null if not recently. */
  readonly rebootedAtMs: number | null;
  /** See OpeningPlan. */
  readonly suspectedReboot: SuspectedReboot | null;
  /** The two agents that use the node's identity; null if only one does. */
  readonly duplicate: AgentPair | null;
  readonly loss: Loss;
  readonly session: {
    readonly epoch: number;
    /** The replica that owns the session; null if the node never connected. */
    readonly replicaId: string | null;
    /** The peer as `host:port`, or null. */
    readonly address: string | null;
  };
}
