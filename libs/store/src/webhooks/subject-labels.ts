import type { Json } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import { labelsOf } from "../nodes/labels.ts";

/**
 * Read the effective labels of nodes, keyed by node id. For a removed node, these are the labels that it had
 * when it was removed. Unknown ids are left out; a node without labels has an empty map.
 */
export async function subjectLabels(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const found = new Map<string, ReadonlyMap<string, string>>();
  if (ids.length === 0) return found;
  const { rows } = await sql<{ id: string; last: Json | null }>`
    select n.id, null::jsonb as last from nodes as n where n.id = any(${[...ids]})
    union all
    select * from (
      select distinct on (t.node_id) t.node_id, t.last_state -> 'labels'
      from node_tombstones as t
      where t.node_id = any(${[...ids]}) and not exists (select from nodes as n where n.id = t.node_id)
      order by t.node_id, t.id desc
    ) as gone`.execute(db);
  const present = rows.filter(({ last }) => last === null).map(({ id }) => id);
  const labels = await labelsOf(db, present);
  for (const id of present) found.set(id, new Map((labels.get(id) ?? []).map(({ key, value }) => [key, value])));
  for (const { id, last } of rows) if (last !== null) found.set(id, lastLabels(last));
  return found;
}

function lastLabels(last: Json): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const label of Array.isArray(last) ? (last as readonly Json[]) : []) {
    const { key, value } = (label ?? {}) as { readonly key?: Json; readonly value?: Json };
    if (typeof key === "string" && typeof value === "string") labels.set(key, value);
  }
  return labels;
}
