import type { NodeRecord } from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import type { Db } from "../database/store.ts";
import { type NodeRow, selectNodes, toNodeRecord } from "./node-rows.ts";

/** Nodes of one read: all of them are measured, however few fit. */
const READ_NODES = 64;
/**
 * Most bytes of one read, as texts of JSON: a few hundred machines with eight GPUs. The first of a read may alone have
 * more.
 */
const READ_BYTES = 1_048_576;

/**
 * Read nodes in the order of their ids as given, in pieces of a bounded size, so that many large ones are never in
 * memory at once. Those that are not there are left out, and no piece is empty.
 */
export async function* readNodes(db: Db, ids: readonly string[]): AsyncGenerator<readonly NodeRecord[]> {
  let from = 0;
  while (from < ids.length) {
    const some = ids.slice(from, from + READ_NODES);
    const nodes = await readThatFit(db, some);
    const last = nodes.at(-1);
    if (last !== undefined) yield nodes;
    // Those before the last one that are missing are not there, and neither is any when all are missing.
    from += last === undefined ? some.length : some.lastIndexOf(last.id) + 1;
  }
}

/** How many of these nodes, from the first on, fit into so many bytes: at least one, if there are any. */
export async function countThatFit(db: Db, ids: readonly string[], bytes: number): Promise<number> {
  const fitting = await sql<{ place: bigint }>`${idsThatFit(ids, bytes)}`.execute(db);
  return Math.max(0, ...fitting.rows.map(({ place }) => Number(place)));
}

/** The first of some nodes, as many as fit into one read. */
async function readThatFit(db: Db, ids: readonly string[]): Promise<readonly NodeRecord[]> {
  // Measured by the same statement that reads them: nothing can grow in between.
  const fit = sql<SqlBool>`n.id in (select id from (${idsThatFit(ids, READ_BYTES)}) as fitting)`;
  const rows: NodeRow[] = await selectNodes(db).where(fit).execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []).map(toNodeRecord);
}

/** Those of the first of some nodes that fit, and their places from 1 on. */
function idsThatFit(ids: readonly string[], bytes: number) {
  return sql<{ id: string; place: bigint }>`
    select id, place from (
      select wanted.id, wanted.place, min(wanted.place) over () as first_place,
        sum(${SIZE}) over (order by wanted.place) as bytes
      from unnest(${ids}::text[]) with ordinality as wanted (id, place)
      join nodes as sized on sized.id = wanted.id
    ) as measured
    where bytes <= ${bytes} or place = first_place`;
}

/** What a row takes beside what is measured: its states, their reasons, and messages of ordinary length. */
const ROW_BYTES = 1_024;
/**
 * From this size on, stored, a column is large whatever it says. To write it as text, only to measure it, would cost
 * more than to read it alone.
 */
const LARGE_BYTES = 131_072;

const SIZE = sql`(
  ${ROW_BYTES}::integer + ${sizeOfJson("info")} + ${sizeOfJson("approved_hardware")}
  + coalesce((
    select sum(octet_length(l.key) + octet_length(l.value) + 40)
    from node_labels as l where l.node_id = sized.id
  ), 0)
)`;

/** The text's length: what is stored may be compressed a hundredfold. */
function sizeOfJson(column: string) {
  const value = sql.ref(`sized.${column}`);
  return sql`coalesce(
    case
      when pg_column_size(${value}) > ${LARGE_BYTES} then ${READ_BYTES}
      else octet_length(${value}::text)
    end, 0)`;
}
