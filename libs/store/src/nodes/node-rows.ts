import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import type { NodeRow } from "./node-record.ts";

/**
 * Read whole nodes: the query to which callers add which ones. Tables are `n` (nodes), `s` (sessions) and `i`
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
      "s.health_changes",
      "s.flapping_since",
      "s.detected",
      "s.gpu_troubles",
      "s.rebooted_at",
      "n.approved_hardware",
      "n.missing_hardware",
      "i.fingerprint",
      "i.next_fingerprint",
      "i.rotation_requested_at",
      sql<Date | null>`coalesce(i.rotated_at, i.created_at)`.as("key_since"),
      "n.membership",
      "s.connection",
      "s.health",
      sql<NodeRow["labels"]>`(
        select jsonb_agg(
          jsonb_build_object('key', l.key, 'value', l.value, 'tier', l.tier)
          order by l.key, array_position(array['agent', 'token', 'operator'], l.tier)
        )
        from node_labels as l
        where l.node_id = n.id
      )`.as("labels"),
    ]);
}
