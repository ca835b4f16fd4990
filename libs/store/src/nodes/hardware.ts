import {
  AMOUNTS_REST_MS,
  changeOfReport,
  hardwareOf,
  hasNewTrouble,
  type Json,
  missingHardware,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Tx } from "../database/store.ts";

/** What of a node's information is remembered as its hardware, in the same form. */
const HARDWARE_KEYS = ["cpu", "memoryBytes", "diskBytes", "gpus"] as const;

/** The hardware in a node's information, as it is remembered. */
export function hardwareIn(info: { readonly [key: string]: Json }): {
  readonly [key: string]: Json;
} {
  return Object.fromEntries(HARDWARE_KEYS.flatMap((key) => (info[key] === undefined ? [] : [[key, info[key]]])));
}

/** The same in SQL, of the row's own information; null where there is none. */
export const HARDWARE_OF_ROW = sql<string>`
  case when info is null then null else jsonb_strip_nulls(jsonb_build_object(
    'cpu', info -> 'cpu', 'memoryBytes', info -> 'memoryBytes',
    'diskBytes', info -> 'diskBytes', 'gpus', info -> 'gpus'
  )) end`;

/** The hardware that counts as approved: of a node that was approved before this was remembered, what it last said. */
export function approvedHardwareIn(row: {
  readonly membership: string;
  readonly approved_hardware: unknown;
  readonly info: unknown;
}): Json | null {
  const { membership, approved_hardware: approved, info } = row;
  // Both were written from a NodeInfo as protobuf JSON.
  return (approved ?? (membership === "APPROVED" ? info : null)) as Json | null;
}

/** What becomes of a report. */
export type ReportVerdict =
  /** It says something new. */
  | "save"
  /** It differs in what moves by itself alone. */
  | "known"
  /** Amounts have moved so soon after the last change that the next report will do. */
  | "later";

/** What a new report is worth, and what it means for the columns of a node's hardware. The node's row is locked. */
export async function weighReport(
  tx: Tx,
  id: string,
  info: { readonly [key: string]: Json },
): Promise<{
  readonly verdict: ReportVerdict;
  readonly columns: { readonly approved_hardware?: string; readonly missing_hardware?: string };
}> {
  const row = await tx
    .selectFrom("nodes")
    .select(["membership", "approved_hardware", "info"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) return { verdict: "save", columns: {} };
  const approved = approvedHardwareIn(row);
  const baselineHardware = hardwareOf(approved ?? undefined);
  const before = row.info as Json;
  const missing = missingHardware(baselineHardware, hardwareOf(info));
  const missedBefore = missingHardware(baselineHardware, hardwareOf(before));
  const isFirst = row.approved_hardware === null && row.membership === "APPROVED";
  const baseline = hardwareIn((approved as { readonly [key: string]: Json } | null) ?? info);
  const columns = {
    missing_hardware: JSON.stringify(missing),
    ...(isFirst ? { approved_hardware: JSON.stringify(baseline) } : {}),
  };
  // What is lost is told at once, however little or often it moves.
  if (hasNewTrouble(missedBefore, missing)) return { verdict: "save", columns };
  switch (changeOfReport(before, info)) {
    case "facts":
    // Their digests differ, or nobody would have asked.
    case "none":
      return { verdict: "save", columns };
    case "jitter":
      return { verdict: "known", columns };
    case "amounts":
      return { verdict: (await hasChangedOfLate(tx, id)) ? "later" : "save", columns };
  }
}

/** Whether the log has a change of the node's information within the time for which amounts rest. */
async function hasChangedOfLate(tx: Tx, id: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from (
      select at from events
      where subject = ${id} and type = 'node.info.changed'
      order by revision desc
      limit 1
    ) as latest
    where latest.at > now() - make_interval(secs => ${AMOUNTS_REST_MS / 1000})`.execute(tx);
  return rows.length > 0;
}

/** Remember what a node says of its hardware now as what it is to be compared with. The node's row is locked. */
export async function acceptHardware(tx: Tx, id: string): Promise<void> {
  await tx
    .updateTable("nodes")
    .set({
      approved_hardware: HARDWARE_OF_ROW,
      missing_hardware: "[]",
      version: sql<number>`version + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where("id", "=", id)
    .execute();
}
