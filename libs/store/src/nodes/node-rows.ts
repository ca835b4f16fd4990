import {
  approvedHardwareIn,
  type Connection,
  conditionsOf,
  connectionAfter,
  deriveScheduling,
  ESSENTIAL_FACTS,
  type Health,
  hardwareOf,
  healthAfter,
  type Json,
  type JsonInfo,
  type Label,
  type Loss,
  latestPair,
  type Mark,
  type Membership,
  type Node,
  type OutageHistory,
  shownHealth,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/**
 * The query for whole nodes. Callers add conditions. The tables are named `n` (nodes), `s` (sessions) and `i`
 * (identities).
 */
export function selectNodes(db: Db) {
  return db
    .selectFrom("nodes as n")
    .innerJoin("node_sessions as s", "s.node_id", "n.id")
    .leftJoin("node_identities as i", "i.node_id", "n.id")
    .select([
      "n.id",
      "n.type",
      "n.membership_since",
      "n.membership_reason",
      "n.membership_message",
      "n.membership_actor",
      "n.holds",
      "n.eligible_since",
      "n.disturbed_at",
      "n.mark_since",
      "n.mark_message",
      "n.mark_actor",
      "n.info",
      "n.info_digest",
      "n.cores",
      "n.memory_bytes",
      "n.disk_bytes",
      "n.gpus",
      "n.join_token_id",
      "n.ephemeral",
      "n.joined_without_token",
      "n.joined_from",
      "n.version",
      "n.created_at",
      "n.updated_at",
      "s.epoch",
      "s.replica_id",
      "s.address",
      "s.connection_since",
      "s.connection_reason",
      "s.connection_message",
      "s.connection_actor",
      "s.health_since",
      "s.health_reason",
      "s.health_message",
      "s.health_actor",
      "s.machines",
      "s.duplicated_since",
      "s.outages",
      "s.flapping_since",
      "s.gpu_troubles",
      "s.rebooted_at",
      "s.reboot_suspected",
      "s.reaction",
      "s.loss",
      "s.loss_group",
      "s.lost_since",
      "n.approved_hardware",
      "n.missing_hardware",
      "i.fingerprint",
      "i.next_fingerprint",
      "i.rotation_requested_at",
      sql<Date | null>`coalesce(i.rotated_at, i.created_at)`.as("key_since"),
      "n.membership",
      "s.connection",
      "s.health",
      sql<readonly Label[] | null>`(
        select jsonb_agg(
          jsonb_build_object('key', l.key, 'value', l.value, 'tier', l.tier)
          order by l.key, array_position(array['agent', 'token', 'operator'], l.tier)
        )
        from node_labels as l
        where l.node_id = n.id
      )`.as("labels"),
    ]);
}

/**
 * Whether the agent of node `n` cannot determine one of these facts. Facts have the names of NodeInfo's fields.
 */
export function lacksFacts(facts: readonly string[]) {
  const path = `$.unknownFacts[*] ? (${facts.map((fact) => `@.fact == ${JSON.stringify(fact)}`).join(" || ")})`;
  return sql<boolean>`coalesce(jsonb_path_exists(n.info, ${sql.lit(path)}), false)`;
}

/**
 * SQL with the same rule as knowsEssentials(), for node `n`: whether its agent can determine the resources that
 * every execution uses.
 */
export const KNOWS_ESSENTIALS = sql<boolean>`not ${lacksFacts(ESSENTIAL_FACTS)}`;

/** A node as `selectNodes` reads it. */
export type NodeRow = Awaited<ReturnType<ReturnType<typeof selectNodes>["execute"]>>[number];

/** Convert a row to a node. */
export function toNodeRecord(row: NodeRow): Node {
  const mark = toMark(row);
  const createdAtMs = row.created_at.getTime();
  const duplicate = row.duplicated_since === null ? null : latestPair(row.machines);
  return {
    id: row.id,
    type: row.type,
    membership: toMembership(row),
    connection: toConnection(row),
    health: shownHealth({
      detected: toHealth(row),
      mark,
      machines: duplicate,
      conditions: conditionsOf(row.info as Json),
      troubles: [...row.missing_hardware, ...row.gpu_troubles],
      hasRebooted: row.rebooted_at !== null,
    }),
    detectedHealth: toHealth(row),
    mark,
    holds: row.holds,
    disturbedAtMs: row.disturbed_at?.getTime() ?? null,
    scheduling: deriveScheduling(row.holds, row.eligible_since.getTime()),
    info: row.info as JsonInfo | null,
    infoDigest: row.info_digest,
    summary: {
      cores: row.cores,
      memoryBytes: Number(row.memory_bytes),
      diskBytes: Number(row.disk_bytes),
      gpus: row.gpus,
    },
    labels: row.labels ?? [],
    keyFingerprint: row.fingerprint,
    keySinceMs: row.key_since?.getTime() ?? null,
    nextKeyFingerprint: row.next_fingerprint,
    keyRotationRequiredSinceMs: row.rotation_requested_at?.getTime() ?? null,
    joining: {
      tokenId: row.join_token_id,
      ephemeral: row.ephemeral,
      withoutToken: row.joined_without_token,
      from: row.joined_from,
    },
    etag: `${createdAtMs.toString(36)}-${row.version}`,
    createdAtMs,
    updatedAtMs: row.updated_at.getTime(),
    approvedHardware: hardwareOf(approvedHardwareIn(toApproval(row)) ?? undefined),
    missingHardware: row.missing_hardware,
    gpuTroubles: row.gpu_troubles,
    history: toHistory(row),
    rebootedAtMs: row.rebooted_at?.getTime() ?? null,
    suspectedReboot: row.reboot_suspected,
    duplicate,
    loss: toLoss(row),
    session: { epoch: row.epoch, replicaId: row.replica_id, address: row.address },
  };
}

/** Convert the membership columns. */
export function toMembership(
  row: Pick<
    NodeRow,
    "membership" | "membership_since" | "membership_reason" | "membership_message" | "membership_actor"
  >,
): Membership {
  return {
    state: row.membership,
    sinceMs: row.membership_since.getTime(),
    reason: row.membership_reason,
    message: row.membership_message,
    actor: row.membership_actor,
  };
}

/** The session columns of a node that has never connected. The database's clock sets the times. */
export function newSessionColumns(actor: string) {
  const by = { actor, atMs: 0 };
  const connection = connectionAfter("registered", by);
  const health = healthAfter({ kind: "registered" }, by);
  return {
    connection: connection.state,
    connection_reason: connection.reason,
    connection_message: connection.message,
    connection_actor: connection.actor,
    health: health.state,
    health_reason: health.reason,
    health_message: health.message,
    health_actor: health.actor,
  };
}

/** Convert the connection columns. */
export function toConnection(
  row: Pick<
    NodeRow,
    "connection" | "connection_since" | "connection_reason" | "connection_message" | "connection_actor"
  >,
): Connection {
  return {
    state: row.connection,
    sinceMs: row.connection_since.getTime(),
    reason: row.connection_reason,
    message: row.connection_message,
    actor: row.connection_actor,
  };
}

/** Convert the columns of a node's outages. */
export function toHistory(row: Pick<NodeRow, "outages" | "flapping_since">): OutageHistory {
  return {
    outages: row.outages,
    flappingSinceMs: row.flapping_since?.getTime() ?? null,
  };
}

/** Convert the health columns. An operator's mark is not included. */
export function toHealth(
  row: Pick<NodeRow, "health" | "health_since" | "health_reason" | "health_message" | "health_actor">,
): Health {
  return {
    state: row.health,
    sinceMs: row.health_since.getTime(),
    reason: row.health_reason,
    message: row.health_message,
    actor: row.health_actor,
  };
}

/** Convert the columns of a loss. */
export function toLoss(row: Pick<NodeRow, "reaction" | "loss" | "loss_group" | "lost_since">): Loss {
  return {
    reaction: row.reaction,
    number: row.loss === null ? null : Number(row.loss),
    group: row.loss_group,
    sinceMs: row.lost_since?.getTime() ?? null,
  };
}

/**
 * The part of a row that determines a node's approved hardware. Both columns contain a NodeInfo as protobuf JSON.
 */
export function toApproval(row: {
  readonly membership: Membership["state"];
  readonly approved_hardware: unknown;
  readonly info: unknown;
}) {
  const { membership, approved_hardware: approved, info } = row;
  return { membership, approved: approved as JsonInfo | null, info: info as JsonInfo | null };
}

function toMark(row: NodeRow): Mark | null {
  if (row.mark_since === null || row.mark_message === null || row.mark_actor === null) return null;
  return {
    sinceMs: row.mark_since.getTime(),
    message: row.mark_message,
    actor: row.mark_actor,
  };
}
