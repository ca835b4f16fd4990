import type { Label, LabelTier, PolicySubject } from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { Db } from "../database/store.ts";

/** The labels of a node, as agents and the selectors of policies see them. */
export interface LabelsOfNode {
  /** The effective labels, of all tiers. */
  readonly effective: readonly Label[];
  /** The labels of the token and operator tiers. Labels that the agent reports do not affect them. */
  readonly trusted: ReadonlyMap<string, string>;
}

/** The value for a node without labels. */
export const NO_LABELS: LabelsOfNode = { effective: [], trusted: new Map() };

/** Read the labels of these nodes, keyed by node id. Nodes without labels are left out. */
export async function labelSetsOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, LabelsOfNode>> {
  if (ids.length === 0) return new Map();
  // Pass all ids as one parameter: a query with hundreds of parameters takes longer to send than to answer.
  const { rows } = await sql<Label & { node_id: string; effective: boolean }>`${PREPARED}
    select node_id, key, value, tier, effective
    from node_labels
    where node_id = any(${ids}::text[])`.execute(db);
  const labels = new Map<string, { effective: Label[]; trusted: TrustedLabels }>();
  for (const { node_id: nodeId, key, value, tier, effective } of rows) {
    let of = labels.get(nodeId);
    if (of === undefined) {
      of = { effective: [], trusted: new TrustedLabels() };
      labels.set(nodeId, of);
    }
    if (effective) of.effective.push({ key, value, tier });
    of.trusted.say(tier, key, value);
  }
  return labels;
}

/**
 * Read every compute node as policies see it, in order of id. Batches keep memory from growing with the fleet. Nodes
 * that are added or removed in between may be missing.
 */
export async function* policySubjects(db: Db, batchSize = 5_000): AsyncGenerator<readonly PolicySubject[]> {
  let after = "";
  for (;;) {
    const { rows } = await sql<{ id: string; labels: readonly Label[] | null }>`
      select n.id, (
        select jsonb_agg(jsonb_build_object('tier', l.tier, 'key', l.key, 'value', l.value))
        from node_labels as l
        where l.node_id = n.id and l.tier <> 'agent'
      ) as labels
      from nodes as n
      where n.type = 'COMPUTE' and n.id > ${after}
      order by n.id
      limit ${batchSize}`.execute(db);
    if (rows.length > 0) yield rows.map(toSubject);
    const last = rows.at(-1);
    if (last === undefined || rows.length < batchSize) return;
    after = last.id;
  }
}

/** Read one compute node as policies see it; null when it does not exist. */
export async function policySubject(db: Db, nodeId: string): Promise<PolicySubject | null> {
  const row = await db
    .selectFrom("nodes")
    .select("id")
    .where("id", "=", nodeId)
    .where(sql<SqlBool>`type = 'COMPUTE'`)
    .executeTakeFirst();
  if (row === undefined) return null;
  const labels = (await labelSetsOf(db, [nodeId])).get(nodeId) ?? NO_LABELS;
  return { id: row.id, labels: labels.trusted };
}

function toSubject(row: { readonly id: string; readonly labels: readonly Label[] | null }) {
  if (row.labels === null) return { id: row.id, labels: NO_LABELS.trusted };
  const labels = new TrustedLabels();
  for (const { tier, key, value } of row.labels) labels.say(tier, key, value);
  return { id: row.id, labels };
}

/**
 * Labels of the token and operator tiers. If both tiers have a key, the operator's value wins, in whatever order the
 * labels are added.
 */
class TrustedLabels extends Map<string, string> {
  say(tier: LabelTier, key: string, value: string): void {
    if (tier === "operator" || (tier === "token" && !this.has(key))) this.set(key, value);
  }
}
