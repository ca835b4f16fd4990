import {
  caselessId,
  effectiveLabels,
  type InfoReport,
  type JsonInfo,
  type Label,
  type Membership,
  type NodeJoining,
} from "@rollcall/domain";
import { sql } from "kysely";
import { BANS_LOCK } from "../access/bans.ts";
import type { Tx } from "../database/store.ts";
import type { NodeKey } from "./identities.ts";
import { newSessionColumns } from "./node-rows.ts";

/** A compute node that joins, with all that belongs to it. */
export interface NewComputeNode {
  readonly key: NodeKey;
  /** Since when is taken from the database's clock. */
  readonly membership: Membership;
  readonly report: InfoReport;
  /** The hardware that is approved with it; null for a node that waits. */
  readonly approvedHardware: JsonInfo | null;
  readonly joining: NodeJoining;
  /** Labels of the token tier. */
  readonly tokenLabels: Readonly<Record<string, string>>;
}

/**
 * Begin to admit nodes under these ids: until this transaction ends no ban is placed, and no other admits a node
 * under an id of the same letters, in whatever case. Comes before any row is locked, because a transaction that places
 * a ban locks rows after it; look at the record afterwards.
 */
export async function beginAdmission(tx: Tx, ids: readonly string[]): Promise<void> {
  // Names in one order, so that two who want the same ones wait for each other and never in a circle.
  await sql`
    with bans as materialized (select pg_advisory_xact_lock_shared(${BANS_LOCK}))
    select pg_advisory_xact_lock(${NAMES_LOCK}, names.key)
    from bans, (
      select distinct hashtext(name) as key
      from unnest(${ids.map(caselessId)}::text[]) as name
      order by key
    ) as names`.execute(tx);
}

/** An id or a key was taken between the caller's look at the record and its write: look again. */
export class RecordMovedError extends Error {}

/**
 * Add many compute nodes, each with its session, key and labels, as insertNode(), saveKey() and saveInfo() do for one;
 * one statement, because a machine room that comes up registers faster the fewer times a batch goes to the server.
 * Throws RecordMovedError when an id or a key is taken; nothing of the transaction may be kept then.
 */
export async function insertComputeNodes(tx: Tx, nodes: readonly NewComputeNode[]): Promise<void> {
  if (nodes.length === 0) return;
  // The rows of each table are named in one order, so that two transactions that write the same ones at a time wait for
  // each other and never in a circle.
  const byId = nodes.toSorted((left, right) => compare(idOf(left), idOf(right)));
  const byKey = nodes.toSorted((left, right) => compare(left.key.fingerprint, right.key.fingerprint));
  const labels = byId.flatMap(labelRows);
  const { ids, keys } = await tx
    .with("new_nodes", (db) =>
      db
        .insertInto("nodes")
        .values(byId.map(nodeRow))
        .onConflict((conflict) => conflict.column("id").doNothing())
        .returning("id"),
    )
    .with("new_sessions", (db) =>
      // A node that is there already has a session and a key; then all of this is undone.
      db
        .insertInto("node_sessions")
        .values(byId.map(sessionRow))
        .onConflict((conflict) => conflict.column("node_id").doNothing()),
    )
    .with("new_keys", (db) =>
      db
        .insertInto("node_identities")
        .values(byKey.map(keyRow))
        .onConflict((conflict) => conflict.doNothing())
        .returning("node_id"),
    )
    .selectNoFrom((eb) => [
      eb.selectFrom("new_nodes").select(eb.fn.countAll<bigint>().as("count")).as("ids"),
      eb.selectFrom("new_keys").select(eb.fn.countAll<bigint>().as("count")).as("keys"),
    ])
    .executeTakeFirstOrThrow();
  if (Number(ids) < nodes.length) throw new RecordMovedError("a node id was taken meanwhile");
  if (Number(keys) < nodes.length) throw new RecordMovedError("a key was taken meanwhile");
  await insertLabels(tx, labels);
}

function nodeRow({ key, report, membership, approvedHardware, joining }: NewComputeNode) {
  return {
    id: key.nodeId,
    type: "COMPUTE" as const,
    membership: membership.state,
    membership_reason: membership.reason,
    membership_message: membership.message,
    membership_actor: membership.actor,
    info: JSON.stringify(report.info),
    info_digest: report.digest,
    cores: report.summary.cores,
    memory_bytes: BigInt(report.summary.memoryBytes),
    disk_bytes: BigInt(report.summary.diskBytes),
    gpus: report.summary.gpus,
    approved_hardware: approvedHardware === null ? null : JSON.stringify(approvedHardware),
    join_token_id: joining.tokenId,
    ephemeral: joining.ephemeral,
    joined_without_token: joining.withoutToken,
    joined_from: joining.from,
  };
}

function sessionRow({ key: { nodeId }, membership: { actor } }: NewComputeNode) {
  return {
    node_id: nodeId,
    node_type: "COMPUTE" as const,
    // It goes on from that of a node that had the id before, so that nothing of its sessions can be mistaken.
    epoch: sql<number>`coalesce((select max(last_epoch) from node_tombstones where node_id = ${nodeId}), 0)`,
    ...newSessionColumns(actor),
  };
}

function keyRow({ key }: NewComputeNode) {
  return {
    node_id: key.nodeId,
    public_key: Buffer.from(key.publicKey),
    fingerprint: key.fingerprint,
  };
}

function labelRows({ key: { nodeId }, report, tokenLabels }: NewComputeNode) {
  const labels = [...toLabels(report.agentLabels, "agent"), ...toLabels(tokenLabels, "token")];
  const winners = new Map(effectiveLabels(labels).map(({ key, tier }) => [key, tier]));
  return labels.map(({ tier, key, value }) => ({
    ...{ node_id: nodeId, tier, key, value },
    effective: winners.get(key) === tier,
  }));
}

async function insertLabels(tx: Tx, rows: ReturnType<typeof labelRows>): Promise<void> {
  // 200 nodes of 64 labels each would be more parameters than one statement may have.
  for (let start = 0; start < rows.length; start += MOST_LABELS_AT_ONCE) {
    const some = rows.slice(start, start + MOST_LABELS_AT_ONCE);
    await tx.insertInto("node_labels").values(some).execute();
  }
}

function toLabels(labels: Readonly<Record<string, string>>, tier: Label["tier"]): readonly Label[] {
  return Object.entries(labels).map(([key, value]) => ({ key, value, tier }));
}

const MOST_LABELS_AT_ONCE = 2_000;

function idOf({ key }: NewComputeNode): string {
  return key.nodeId;
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/**
 * Names the locks of ids, each of which has its hash besides; any number will do that no other pair of numbers begins
 * with.
 */
const NAMES_LOCK = 5_226_012;
