import type { Node } from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import type { Db } from "../database/store.ts";
import { type NodeRow, selectNodes, toNodeRecord } from "./node-rows.ts";

/** Maximum number of nodes considered for one read. The size of each is measured, even if only a few fit. */
const READ_NODES = 64;
/**
 * Maximum size of one read in bytes, as JSON text: a few hundred machines with eight GPUs. A read exceeds it only if
 * its first node does.
 */
const READ_BYTES = 1_048_576;

/**
 * Read nodes in the given order of ids. They come in pieces of bounded size, so that only a few large nodes are in
 * memory at any moment. Missing nodes are left out, and no piece is empty.
 */
export async function* readNodes(db: Db, ids: readonly string[]): AsyncGenerator<readonly Node[]> {
  let from = 0;
  while (from < ids.length) {
    const some = ids.slice(from, from + READ_NODES);
    const nodes = await readThatFit(db, some);
    const last = nodes.at(-1);
    if (last !== undefined) yield nodes;
    // Continue after the last node that was read. Earlier ids for which no node was read do not exist. If no node
    // was read, none of these ids exists.
    from += last === undefined ? some.length : some.lastIndexOf(last.id) + 1;
  }
}

/**
 * Count how many of these nodes, starting with the first, fit into the given number of bytes: at least one if any
 * exists.
 */
export async function countThatFit(db: Db, ids: readonly string[], bytes: number): Promise<number> {
  const fitting = await sql<{ place: bigint }>`${idsThatFit(ids, bytes)}`.execute(db);
  return Math.max(0, ...fitting.rows.map(({ place }) => Number(place)));
}

/** Read as many of these nodes, starting with the first, as fit into one read. */
async function readThatFit(db: Db, ids: readonly string[]): Promise<readonly Node[]> {
  // Measure the nodes in the statement that reads them, so that none can grow in between.
  const fit = sql<SqlBool>`n.id in (select id from (${idsThatFit(ids, READ_BYTES)}) as fitting)`;
  const rows: NodeRow[] = await selectNodes(db).where(fit).execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []).map(toNodeRecord);
}

/** The ids that fit, starting with the first, and their positions from 1. */
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

/**
 * The assumed size of a row without the measured columns, in bytes: its states, their reasons, and messages of usual
 * length.
 */
const ROW_BYTES = 1_024;
/**
 * Minimum size of a column in the table, in bytes, to count as large without a measurement. Converting such a column
 * to text only to measure it would cost more than reading the node in a separate piece.
 */
const LARGE_BYTES = 131_072;

const SIZE = sql`(
  ${ROW_BYTES}::integer + ${sizeOfJson("info")} + ${sizeOfJson("approved_hardware")}
  + coalesce((
    select sum(octet_length(l.key) + octet_length(l.value) + 40)
    from node_labels as l where l.node_id = sized.id
  ), 0)
)`;

/**
 * The size of a column as JSON text. The stored value can be a hundred times smaller, because it may be compressed.
 */
function sizeOfJson(column: string) {
  const value = sql.ref(`sized.${column}`);
  return sql`coalesce(
    case
      when pg_column_size(${value}) > ${LARGE_BYTES} then ${READ_BYTES}
      else octet_length(${value}::text)
    end, 0)`;
}
