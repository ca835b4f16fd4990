import type { Label, LabelTier, PolicySubject } from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { Db } from "../database/store.ts";

/** The labels of a node as agents and as selectors of policies see them. */
export interface LabelsOfNode {
  /** Those in effect, of every tier. */
  readonly effective: readonly Label[];
  /** What token and operator say, whatever the agent says. */
  readonly trusted: ReadonlyMap<string, string>;
}

/** One without labels. */
export const NO_LABELS: LabelsOfNode = { effective: [], trusted: new Map() };

/** The labels of each of these nodes, by node id; nodes without labels are left out. */
export async function labelSetsOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, LabelsOfNode>> {
  if (ids.length === 0) return new Map();
  // One parameter: a query with hundreds takes longer to write than to answer.
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
 * Every compute node as policies see it, in order of id, a batch at a time: a fleet of any size takes the memory of one
 * batch. Nodes that come or go in between are seen or not.
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

/** One compute node as policies see it, or null. */
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

/** Of two tiers that say something of one key, the operator counts, in whichever order they speak. */
class TrustedLabels extends Map<string, string> {
  say(tier: LabelTier, key: string, value: string): void {
    if (tier === "operator" || (tier === "token" && !this.has(key))) this.set(key, value);
  }
}
