import {
  AMOUNTS_REST_MS,
  type Hold,
  holdsAfterReport,
  type InfoReport,
  type Label,
  type ReportPlan,
  weighReport,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Tx } from "../database/store.ts";
import { replaceLabels } from "./labels.ts";
import { toApproval } from "./node-rows.ts";
import { TOUCHED } from "./nodes.ts";

/**
 * SQL for the hardware in the row's own information, with the same fields as hardwareIn(); null if there is no
 * information.
 */
export const HARDWARE_OF_ROW = sql<string>`
  case when info is null then null else jsonb_strip_nulls(jsonb_build_object(
    'cpu', info -> 'cpu', 'memoryBytes', info -> 'memoryBytes',
    'diskBytes', info -> 'diskBytes', 'gpus', info -> 'gpus',
    'unknownFacts', nullif(jsonb_path_query_array(info,
      '$.unknownFacts[*] ? (@.fact == "gpus" && !exists(@.knownTime))'), '[]')
  )) end`;

/** The columns to set for a node's holds. */
export function holdsColumns(holds: readonly Hold[]) {
  return {
    holds: JSON.stringify(holds),
    disturbed_at: sql<Date | null>`case when ${isCalmed(holds)} then now() else disturbed_at end`,
    ...(holds.length > 0
      ? {}
      : { eligible_since: sql<Date>`case when holds = '[]'::jsonb then eligible_since else now() end` }),
  };
}

/** Whether the row has a drain or a hold for flapping that is not among these holds. */
function isCalmed(holds: readonly Hold[]) {
  const kinds = holds.map(({ kind }) => kind);
  const lifted = (["DRAIN", "FLAPPING"] as const).filter((kind) => !kinds.includes(kind));
  return sql<boolean>`jsonb_path_query_array(holds, '$[*].kind') ?| ${lifted}::text[]`;
}

/**
 * The outcome of a report: "saved"; "known" if nothing changed except values that change constantly; or "later" if a
 * later report will be saved.
 */
export type SavedInfo = "saved" | "known" | "later";

/** What to do with a report. `holds` are the node's new holds; null if the report does not change them. */
interface PlannedReport extends ReportPlan {
  readonly holds: readonly Hold[] | null;
}

/**
 * Save what a node reports about itself, if weighReport() decides so. Changed amounts are written at most every ten
 * minutes. Only this function adds and removes the hold for reported conditions. The caller has locked the node's row
 * and its labels, and compares the labels to find out what changed.
 */
export async function saveInfo(tx: Tx, id: string, report: InfoReport): Promise<SavedInfo> {
  const { info, digest, summary, agentLabels } = report;
  const plan = await planReport(tx, id, report);
  if (plan?.decision === "known") return "known";
  if (plan?.decision === "save-if-rested" && (await hasChangedOfLate(tx, id))) return "later";
  const changed = await tx
    .updateTable("nodes")
    .set({
      info: JSON.stringify(info),
      info_digest: digest,
      cores: summary.cores,
      memory_bytes: BigInt(summary.memoryBytes),
      disk_bytes: BigInt(summary.diskBytes),
      gpus: summary.gpus,
      ...(plan === null ? {} : { missing_hardware: JSON.stringify(plan.missing) }),
      ...(plan === null || plan.approved === null ? {} : { approved_hardware: JSON.stringify(plan.approved) }),
      ...(plan === null || plan.holds === null ? {} : holdsColumns(plan.holds)),
      ...TOUCHED,
    })
    .where("id", "=", id)
    .where((where) => where.or([where("info_digest", "is", null), where("info_digest", "<>", digest)]))
    .returning("id")
    .executeTakeFirst();
  if (changed === undefined) return "known";
  const labels = Object.entries(agentLabels).map(([key, value]): Label => ({ key, value, tier: "agent" }));
  await replaceLabels(tx, id, "agent", labels);
  return "saved";
}

/** Plan what to do with a report; null if the node does not exist. */
async function planReport(tx: Tx, id: string, { info }: InfoReport): Promise<PlannedReport | null> {
  const row = await tx
    .selectFrom("nodes")
    .select([
      "membership",
      "approved_hardware",
      "missing_hardware",
      "info",
      "holds",
      sql<Date>`clock_timestamp()`.as("now"),
    ])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) return null;
  const holds = holdsAfterReport(row.holds, info, { actor: `node:${id}`, atMs: row.now.getTime() });
  return {
    ...weighReport({ ...toApproval(row), missing: row.missing_hardware }, info),
    holds: holds === row.holds ? null : holds,
  };
}

/** Whether the log contains a change to the node's information within the last AMOUNTS_REST_MS. */
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
