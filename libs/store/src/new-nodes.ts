import { effectiveLabels, type Label, type Membership } from "@rollcall/domain";
import { hardwareIn } from "./hardware.ts";
import type { NodeKey } from "./identities.ts";
import type { NodeJoining } from "./node-record.ts";
import type { InfoReport } from "./nodes.ts";
import type { Tx } from "./store.ts";

/** A compute node that joins, with all that belongs to it. */
export interface NewComputeNode {
  readonly key: NodeKey;
  /** Since when is taken from the database's clock. */
  readonly membership: Membership;
  readonly report: InfoReport;
  readonly joining: NodeJoining;
  /** Labels of the token tier. */
  readonly tokenLabels: Readonly<Record<string, string>>;
}

/** Somebody else took an id or a key between the caller's look at the record and its write: look again. */
export class RecordMovedError extends Error {}

/**
 * Add many compute nodes in a few statements, each with its session, key and labels, as insertNode(), saveKey() and saveInfo()
 * do for one. Throws RecordMovedError when an id or a key is taken; nothing of the transaction may be kept then.
 */
export async function insertComputeNodes(tx: Tx, nodes: readonly NewComputeNode[]): Promise<void> {
  if (nodes.length === 0) return;
  // Every statement names its rows in one order, so that two transactions that write the same ones at a time wait for each
  // other and never in a circle.
  const byId = nodes.toSorted((left, right) => compare(idOf(left), idOf(right)));
  await insertNodes(tx, byId);
  await insertSessions(tx, byId);
  await insertKeys(tx, byId);
  await insertLabels(tx, byId);
}

async function insertNodes(tx: Tx, nodes: readonly NewComputeNode[]): Promise<void> {
  const rows = nodes.map(({ key, report, membership, joining }) => ({
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
    approved_hardware:
      membership.state === "APPROVED" ? JSON.stringify(hardwareIn(report.info)) : null,
    join_token_id: joining.tokenId,
    ephemeral: joining.ephemeral,
    joined_without_token: joining.withoutToken,
  }));
  const inserted = await tx
    .insertInto("nodes")
    .values(rows)
    .onConflict((conflict) => conflict.column("id").doNothing())
    .returning("id")
    .execute();
  if (inserted.length < rows.length) throw new RecordMovedError("a node id was taken meanwhile");
}

/** Epochs go on from those of a node that had the id before, so that nothing of its sessions can be mistaken. */
async function insertSessions(tx: Tx, nodes: readonly NewComputeNode[]): Promise<void> {
  const buried = await tx
    .selectFrom("node_tombstones")
    .select(({ fn }) => ["node_id", fn.max("last_epoch").as("last_epoch")])
    .where("node_id", "in", nodes.map(idOf))
    .groupBy("node_id")
    .execute();
  const epochs = new Map(buried.map(({ node_id, last_epoch }) => [node_id, last_epoch]));
  const rows = nodes.map(({ key: { nodeId }, membership: { actor } }) => ({
    node_id: nodeId,
    node_type: "COMPUTE" as const,
    epoch: epochs.get(nodeId) ?? 0,
    connection: "DISCONNECTED" as const,
    connection_reason: "NEVER_CONNECTED",
    connection_message: "",
    connection_actor: actor,
    health: "UNKNOWN" as const,
    health_reason: "NEVER_CONNECTED",
    health_message: "",
    health_actor: actor,
  }));
  await tx.insertInto("node_sessions").values(rows).execute();
}

async function insertKeys(tx: Tx, nodes: readonly NewComputeNode[]): Promise<void> {
  const rows = nodes.map(({ key }) => ({
    node_id: key.nodeId,
    public_key: Buffer.from(key.publicKey),
    fingerprint: key.fingerprint,
  }));
  rows.sort((left, right) => compare(left.fingerprint, right.fingerprint));
  const inserted = await tx
    .insertInto("node_identities")
    .values(rows)
    .onConflict((conflict) => conflict.column("fingerprint").doNothing())
    .returning("node_id")
    .execute();
  if (inserted.length < rows.length) throw new RecordMovedError("a key was taken meanwhile");
}

async function insertLabels(tx: Tx, nodes: readonly NewComputeNode[]): Promise<void> {
  const rows = nodes.flatMap(({ key: { nodeId }, report, tokenLabels }) => {
    const labels = [...toLabels(report.agentLabels, "agent"), ...toLabels(tokenLabels, "token")];
    const winners = new Map(effectiveLabels(labels).map(({ key, tier }) => [key, tier]));
    return labels.map(({ tier, key, value }) => ({
      ...{ node_id: nodeId, tier, key, value },
      effective: winners.get(key) === tier,
    }));
  });
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
