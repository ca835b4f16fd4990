import {
  caselessId,
  effectiveLabels,
  type Hold,
  type InfoReport,
  type JsonInfo,
  type Label,
  type Membership,
  type NodeJoining,
} from "@rollcall/domain";
import { sql } from "kysely";
import { BANS_LOCK } from "../access/bans.ts";
import { rowsFrom } from "../database/batches.ts";
import { together } from "../database/one-connection.ts";
import { PREPARED } from "../database/pool.ts";
import type { Tx } from "../database/store.ts";
import type { NodeKey } from "./identities.ts";
import { newSessionColumns } from "./node-rows.ts";

/** A joining compute node, with the content of all its rows. */
export interface NewComputeNode {
  readonly key: NodeKey;
  /** The node's first membership. Its time is ignored, because the database's clock sets the time. */
  readonly membership: Membership;
  readonly report: InfoReport;
  /** The hardware that is approved with the node; null for a pending node. */
  readonly approvedHardware: JsonInfo | null;
  /** Holds for the conditions that the node reports. */
  readonly holds: readonly Hold[];
  readonly joining: NodeJoining;
  /** Labels of the token tier. */
  readonly tokenLabels: Readonly<Record<string, string>>;
}

/**
 * Begin to admit nodes with these ids. Until this transaction ends, no ban is added, and no other transaction admits a
 * node with one of these ids or with an id that differs only in case. Must be called before the transaction locks any
 * row, because a transaction that adds a ban also takes this lock first. Read what your decision depends on after this
 * call.
 */
export async function beginAdmission(tx: Tx, ids: readonly string[]): Promise<void> {
  // Lock the names in a fixed order, so that two transactions with the same names cannot deadlock.
  await sql`${PREPARED}
    with bans as materialized (select pg_advisory_xact_lock_shared(${BANS_LOCK}))
    select pg_advisory_xact_lock(${NAMES_LOCK}, names.key)
    from bans, (
      select distinct hashtext(name) as key
      from unnest(${ids.map(caselessId)}::text[]) as name
      order by key
    ) as names`.execute(tx);
}

/**
 * Thrown when another transaction took an id or a key between the caller's read and its write. The caller must read
 * again.
 */
export class StoreMovedError extends Error {}

/**
 * Add many compute nodes, each with its session, key and labels, as insertNode() and saveInfo() do for one node. It
 * uses two statements with constant texts, because fewer round trips and less parsing speed up mass registrations.
 * Throws StoreMovedError when an id or a key is taken. The caller must then roll back the transaction.
 */
export async function insertComputeNodes(tx: Tx, nodes: readonly NewComputeNode[]): Promise<void> {
  if (nodes.length === 0) return;
  // Use one initial session for all nodes, because only the actor that admitted the node differs.
  const { connection_actor: _, health_actor: __, ...session } = newSessionColumns("");
  // Write the rows of each table in a fixed order, so that two transactions that write the same rows cannot deadlock. A
  // node that already exists has a session and a key. If any node exists, everything here is rolled back.
  const inserting = sql<{ readonly ids: number; readonly keys: number }>`${PREPARED}
    with given as materialized (select * from ${rowsFrom(nodes.map(toRow), ROW_COLUMNS)} as new_row),
    new_nodes as (
      insert into nodes (
        id, type, membership, membership_reason, membership_message, membership_actor, info, info_digest, cores,
        memory_bytes, disk_bytes, gpus, approved_hardware, holds, join_token_id, ephemeral, joined_without_token,
        joined_from
      )
      select id, 'COMPUTE', membership, reason, message, actor, info, digest, cores, memory, disk, gpus, hardware,
        holds, token, ephemeral, tokenless, joined_from
      from given order by id
      on conflict (id) do nothing
      returning id
    ),
    new_sessions as (
      insert into node_sessions (
        node_id, node_type, epoch, connection, connection_reason, connection_message, connection_actor, health,
        health_reason, health_message, health_actor
      )
      select id, 'COMPUTE',
        coalesce((select max(t.last_epoch) from node_tombstones as t where t.node_id = given.id), 0),
        ${session.connection}, ${session.connection_reason}, ${session.connection_message}, actor,
        ${session.health}, ${session.health_reason}, ${session.health_message}, actor
      from given order by id
      on conflict (node_id) do nothing
    ),
    new_keys as (
      insert into node_identities (node_id, public_key, fingerprint)
      select id, decode(key, 'hex'), fingerprint from given order by fingerprint
      on conflict do nothing
      returning node_id
    )
    select (select count(*) from new_nodes)::integer as ids, (select count(*) from new_keys)::integer as keys
  `
    .execute(tx)
    .then(({ rows: [counts] }) => {
      const { ids = 0, keys = 0 } = counts ?? {};
      if (ids < nodes.length) throw new StoreMovedError("a node id was taken in the meantime");
      if (keys < nodes.length) throw new StoreMovedError("a key was taken in the meantime");
    });
  await together({ inserting, labels: insertLabels(tx, nodes.flatMap(labelRows)) });
}

const ROW_COLUMNS = sql`
  id text collate "C", membership text, reason text, message text, actor text, info jsonb, digest text, cores integer,
  memory bigint, disk bigint, gpus integer, hardware jsonb, holds jsonb, token text, ephemeral boolean,
  tokenless boolean, joined_from text, key text, fingerprint text`;

function toRow({ key, report, membership, approvedHardware, holds, joining }: NewComputeNode) {
  return {
    id: key.nodeId,
    membership: membership.state,
    reason: membership.reason,
    message: membership.message,
    actor: membership.actor,
    info: report.info,
    digest: report.digest,
    cores: report.summary.cores,
    memory: report.summary.memoryBytes,
    disk: report.summary.diskBytes,
    gpus: report.summary.gpus,
    hardware: approvedHardware,
    holds,
    token: joining.tokenId,
    ephemeral: joining.ephemeral,
    tokenless: joining.withoutToken,
    joined_from: joining.from,
    key: Buffer.from(key.publicKey).toString("hex"),
    fingerprint: key.fingerprint,
  };
}

function labelRows({ key: { nodeId }, report, tokenLabels }: NewComputeNode) {
  const labels = [...toLabels(report.agentLabels, "agent"), ...toLabels(tokenLabels, "token")];
  const winners = new Map(effectiveLabels(labels).map(({ key, tier }) => [key, tier]));
  return labels.map(({ tier, key, value }) => ({
    node_id: nodeId,
    tier,
    key,
    value,
    effective: winners.get(key) === tier,
  }));
}

async function insertLabels(tx: Tx, labels: ReturnType<typeof labelRows>): Promise<void> {
  if (labels.length === 0) return;
  const columns = sql`node_id text, tier text, key text, value text, effective boolean`;
  await sql`${PREPARED}
    insert into node_labels (node_id, tier, key, value, effective)
    select node_id, tier, key, value, effective from ${rowsFrom(labels, columns)} as new_label
    order by node_id, tier, key
  `.execute(tx);
}

function toLabels(labels: Readonly<Record<string, string>>, tier: Label["tier"]): readonly Label[] {
  return Object.entries(labels).map(([key, value]) => ({ key, value, tier }));
}

/**
 * The first key of the advisory locks for ids: any number that no other two-key lock uses as its first key. The second
 * key is a hash of the id.
 */
const NAMES_LOCK = 5_226_012;
