import {
  BRAKE_CLUSTER,
  BRAKE_WINDOW_MS,
  type BrakeChange,
  type BrakeMarks,
  type BrakeReading,
  type BrakeRow,
  type BrakeSums,
  brakeSumsFromJson,
  type GroupLosses,
  type Json,
  SHOWN_SETTLED_MS,
  type ShownBrake,
  showBrakes,
  shownMarks,
} from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { BrakesTable } from "../database/schema.ts";
import type { Db, Tx } from "../database/store.ts";
import { lossBefore } from "./reactions.ts";

/** The name of the lease of the process that decides about the brake. */
export const BRAKE_LEASE = "brake";

/**
 * Read everything that brake decisions need. One statement counts the losses, so that the numbers come from one
 * snapshot.
 */
export async function readBrake(db: Db, marks: BrakeMarks): Promise<BrakeReading> {
  const windows = Object.fromEntries(marks.windows);
  const ofCluster = marks.windows.get(BRAKE_CLUSTER) ?? marks.window;
  const { rows } = await sql<Look>`
    with counted as (
      select
        s.loss_group as "group",
        count(*) filter (
          where s.loss > coalesce((${JSON.stringify(windows)}::jsonb ->> s.loss_group)::bigint, ${marks.window}::bigint)
        ) as lost,
        count(*) filter (where s.loss > ${ofCluster}::bigint) as "lostOfCluster",
        count(*) filter (where s.loss > ${marks.settled}::bigint) as unsettled
      from node_sessions as s
      where s.loss > ${Math.min(marks.window, marks.settled, ...marks.windows.values())}::bigint
      group by s.loss_group
    ),
    pending as (
      select loss_group as "group", count(*) as pending
      from node_sessions where reaction = 'PENDING' group by loss_group
    )
    select
      (select coalesce(max(loss), 0) from node_sessions where loss is not null) as "lastLoss",
      (
        select coalesce(jsonb_object_agg(l.instance, l.brake_sums), '{}')
        from leases as l where l.name = l.instance and l.brake_sums is not null
      ) as reports,
      (
        select coalesce(jsonb_agg(jsonb_build_object(
          'group', "group",
          'lost', coalesce(lost, 0), 'lostOfCluster', coalesce("lostOfCluster", 0),
          'unsettled', coalesce(unsettled, 0), 'pending', coalesce(pending, 0)
        )), '[]')
        from counted full join pending using ("group")
      ) as losses`.execute(db);
  const [look] = rows;
  if (look === undefined) throw new Error("the brake query returned no row");
  return {
    reports: toReports(look.reports),
    losses: look.losses,
    lastLoss: Number(look.lastLoss),
    rows: await listBrakes(db),
  };
}

/** Read every brake in the form that people see: the cluster's first, then groups by name. */
export async function readShownBrakes(db: Db): Promise<readonly ShownBrake[]> {
  const window = await lossBefore(db, BRAKE_WINDOW_MS);
  const settled = await lossBefore(db, SHOWN_SETTLED_MS);
  const marks = shownMarks(await listBrakes(db), { window, settled });
  return showBrakes(await readBrake(db, marks));
}

/** List the stored brakes, sorted by group. */
export async function listBrakes(db: Db): Promise<readonly BrakeRow[]> {
  const rows = await db.selectFrom("brakes").selectAll().orderBy("group_name").execute();
  return rows.map(toBrakeRow);
}

/** Write a brake's mode. If the row exists, its freeze and orders do not change. */
export async function saveBrake(tx: Tx, change: BrakeChange): Promise<void> {
  const { group: group_name, before, after: mode, size, windowLoss } = change;
  const written = { mode, size, window_loss: BigInt(windowLoss) };
  await tx
    .insertInto("brakes")
    .values({ group_name, ...written })
    .onConflict((conflict) =>
      conflict.constraint("brakes_pkey").doUpdateSet({
        ...written,
        ...(before === mode ? {} : { mode_since: sql<Date>`now()` }),
      }),
    )
    .execute();
}

/** Record that all orders by operators in this row were carried out. */
export async function saveFollowed(tx: Tx, { group, orders }: BrakeRow): Promise<void> {
  await tx
    .updateTable("brakes")
    .set({ followed: orders })
    .where("group_name", "=", group)
    .where("followed", "<", orders)
    .execute();
}

/** Delete the rows of brakes that are in their default state. */
export async function forgetBrakes(tx: Tx, groups: readonly string[]): Promise<void> {
  if (groups.length === 0) return;
  await tx
    .deleteFrom("brakes")
    .where("group_name", "in", groups)
    .where("mode", "=", "NORMAL")
    .where("frozen_since", "is", null)
    .whereRef("followed", "=", "orders")
    .execute();
}

/** Lock the row of a group's brake until the transaction ends, and return it. Creates the row if it does not exist. */
export async function lockBrake(tx: Tx, group: string): Promise<BrakeRow> {
  const row = await tx
    .insertInto("brakes")
    .values({ group_name: group })
    // Insert and lock in one statement, because the row could be deleted between two statements. The update changes
    // nothing.
    .onConflict((conflict) => conflict.constraint("brakes_pkey").doUpdateSet({ group_name: group }))
    .returningAll()
    .executeTakeFirstOrThrow();
  return toBrakeRow(row);
}

/** Freeze a locked brake, or lift the freeze. */
export async function saveFreeze(
  tx: Tx,
  group: string,
  freeze: { readonly actor: string; readonly reason: string } | null,
): Promise<void> {
  await tx
    .updateTable("brakes")
    .set(
      freeze === null
        ? { frozen_since: null, frozen_by: null, frozen_reason: null }
        : {
            frozen_since: sql<Date>`now()`,
            frozen_by: freeze.actor,
            frozen_reason: freeze.reason,
          },
    )
    .where("group_name", "=", group)
    .execute();
}

/** Order the release of all reactions that are pending now. The caller has locked the brake. */
export async function saveOrder(
  tx: Tx,
  group: string,
  by: { readonly actor: string; readonly reason: string },
): Promise<void> {
  await tx
    .updateTable("brakes")
    .set({
      orders: sql<number>`orders + 1`,
      ordered_loss: sql<bigint>`(select coalesce(max(loss), 0) from node_sessions where loss is not null)`,
      ordered_by: by.actor,
      order_reason: by.reason,
    })
    .where("group_name", "=", group)
    .execute();
}

/**
 * Keep the brake's lease from ending until this transaction ends. Returns false when another process holds the lease by
 * now. In that case, write nothing. Renewals can continue, but a statement that ends the lease waits.
 */
export async function holdBrakeLease(tx: Tx, instance: string): Promise<boolean> {
  const { rows } = await sql`
    select from leases where name = ${BRAKE_LEASE} and instance = ${instance} for key share`.execute(tx);
  return rows.length > 0;
}

interface Look {
  readonly lastLoss: bigint;
  readonly reports: Readonly<Record<string, Json>>;
  readonly losses: readonly GroupLosses[];
}

function toReports(reports: Readonly<Record<string, Json>>): ReadonlyMap<string, BrakeSums> {
  return new Map(
    Object.entries(reports).flatMap(([instance, report]) => {
      const sums = brakeSumsFromJson(report);
      return sums === null ? [] : [[instance, sums] as const];
    }),
  );
}

function toBrakeRow(row: Selectable<BrakesTable>): BrakeRow {
  const { frozen_since: frozenSince } = row;
  return {
    group: row.group_name,
    mode: row.mode,
    sinceMs: row.mode_since.getTime(),
    size: row.size,
    windowLoss: Number(row.window_loss),
    frozen:
      frozenSince === null
        ? null
        : {
            sinceMs: frozenSince.getTime(),
            actor: row.frozen_by ?? "",
            reason: row.frozen_reason ?? "",
          },
    orders: row.orders,
    followed: row.followed,
    orderedLoss: Number(row.ordered_loss),
    orderedBy: row.ordered_by,
    orderReason: row.order_reason,
  };
}
