import { listNodes, type NodeRecord, type Tx } from "@rollcall/store";
import type { NodeCreation } from "./plan-registrations.ts";
import { nonceName, type Registration } from "./registration.ts";

/** Somebody else took an id or a key between our look at the record and our write: look again. */
export class RecordMovedError extends Error {}

// Every statement below names its rows in one order, ids, keys and nonces each in their own, so that two registries that
// write the same ones at a time wait for each other and never in a circle.

/** Use up the nonces of a batch; the names of those that were not used before. */
export async function useNonces(
  tx: Tx,
  batch: readonly Registration[],
): Promise<ReadonlySet<string>> {
  const nonces = new Map(batch.map(({ nonce }) => [nonceName(nonce), Buffer.from(nonce)]));
  const inOrder = [...nonces.values()].sort(Buffer.compare);
  const used = await tx
    .insertInto("used_challenges")
    .values(inOrder.map((nonce) => ({ nonce })))
    .onConflict((conflict) => conflict.column("nonce").doNothing())
    .returning("nonce")
    .execute();
  return new Set(used.map(({ nonce }) => nonceName(nonce)));
}

/** Lock the nodes of a batch that are known. */
export async function lockKnown(
  tx: Tx,
  batch: readonly Registration[],
): Promise<readonly NodeRecord[]> {
  const ids = [...new Set(batch.map(({ nodeId }) => nodeId))];
  const locked = await tx
    .selectFrom("nodes")
    .select("id")
    .where("id", "in", ids)
    .orderBy("id")
    .forNoKeyUpdate()
    .execute();
  // A second look, because the snapshot of the first may be older than the locks that it waited for.
  return readNodes(
    tx,
    locked.map(({ id }) => id),
  );
}

/** Nodes by id; those that are not there are left out. */
export async function readNodes(tx: Tx, ids: readonly string[]): Promise<readonly NodeRecord[]> {
  if (ids.length === 0) return [];
  const orderBy = { column: "id", descending: false } as const;
  return (await listNodes(tx, { filter: { ids }, orderBy, limit: ids.length, after: null })).nodes;
}

/** Who owns the keys of a batch, by fingerprint. */
export async function keyOwners(
  tx: Tx,
  batch: readonly Registration[],
): Promise<ReadonlyMap<string, string>> {
  const fingerprints = [...new Set(batch.map(({ fingerprint }) => fingerprint))];
  const rows = await tx
    .selectFrom("node_identities")
    .select(["node_id", "fingerprint"])
    .where("fingerprint", "in", fingerprints)
    .execute();
  return new Map(rows.map(({ node_id, fingerprint }) => [fingerprint, node_id]));
}

/** Add nodes to the record, with all that belongs to them. Throws RecordMovedError when an id or a key is taken. */
export async function createNodes(tx: Tx, creations: readonly NodeCreation[]): Promise<void> {
  if (creations.length === 0) return;
  const byId = creations.toSorted((left, right) => compare(nodeIdOf(left), nodeIdOf(right)));
  await insertNodes(tx, byId);
  await insertSessions(tx, byId);
  await insertKeys(tx, byId);
  await insertLabels(tx, byId);
}

async function insertNodes(tx: Tx, creations: readonly NodeCreation[]): Promise<void> {
  const rows = creations.map(({ registration: { nodeId, report }, membership }) => ({
    id: nodeId,
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
async function insertSessions(tx: Tx, creations: readonly NodeCreation[]): Promise<void> {
  const buried = await tx
    .selectFrom("node_tombstones")
    .select(({ fn }) => ["node_id", fn.max("last_epoch").as("last_epoch")])
    .where("node_id", "in", creations.map(nodeIdOf))
    .groupBy("node_id")
    .execute();
  const epochs = new Map(buried.map(({ node_id, last_epoch }) => [node_id, last_epoch]));
  const rows = creations.map(({ registration: { nodeId }, membership: { actor } }) => ({
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

async function insertKeys(tx: Tx, creations: readonly NodeCreation[]): Promise<void> {
  const rows = creations.map(({ registration: { nodeId, publicKey, fingerprint } }) => ({
    node_id: nodeId,
    public_key: Buffer.from(publicKey),
    fingerprint,
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

async function insertLabels(tx: Tx, creations: readonly NodeCreation[]): Promise<void> {
  const rows = creations.flatMap(({ registration: { nodeId, report } }) =>
    Object.entries(report.agentLabels).map(([key, value]) => ({
      node_id: nodeId,
      tier: "agent" as const,
      key,
      value,
      // A new node has no labels of other tiers that could win.
      effective: true,
    })),
  );
  // 200 nodes of 64 labels each would be more parameters than one statement may have.
  for (let start = 0; start < rows.length; start += MOST_LABELS_AT_ONCE) {
    const some = rows.slice(start, start + MOST_LABELS_AT_ONCE);
    await tx.insertInto("node_labels").values(some).execute();
  }
}

const MOST_LABELS_AT_ONCE = 2_000;

function nodeIdOf({ registration }: NodeCreation): string {
  return registration.nodeId;
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
