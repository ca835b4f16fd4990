import { hardwareOf, type Json, missingHardware } from "@rollcall/domain";
import { sql } from "kysely";
import type { Tx } from "./store.ts";

/** What of a node's information is remembered as its hardware, in the same form. */
const HARDWARE_KEYS = ["cpu", "memoryBytes", "diskBytes", "gpus"] as const;

/** The hardware in a node's information, as it is remembered. */
export function hardwareIn(info: { readonly [key: string]: Json }): {
  readonly [key: string]: Json;
} {
  return Object.fromEntries(
    HARDWARE_KEYS.flatMap((key) => (info[key] === undefined ? [] : [[key, info[key]]])),
  );
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

/** What a new report means for the columns of a node's hardware. The node's row is locked. */
export async function hardwareColumns(
  tx: Tx,
  id: string,
  info: { readonly [key: string]: Json },
): Promise<{ readonly approved_hardware?: string; readonly missing_hardware?: string }> {
  const row = await tx
    .selectFrom("nodes")
    .select(["membership", "approved_hardware", "info"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) return {};
  const approved = approvedHardwareIn(row);
  const missing = missingHardware(hardwareOf(approved ?? undefined), hardwareOf(info));
  const isFirst = row.approved_hardware === null && row.membership === "APPROVED";
  const baseline = hardwareIn((approved as { readonly [key: string]: Json } | null) ?? info);
  return {
    missing_hardware: JSON.stringify(missing),
    ...(isFirst ? { approved_hardware: JSON.stringify(baseline) } : {}),
  };
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
