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

/** The hardware of the row's own information, as hardwareIn() takes it out of a value; null where there is none. */
export const HARDWARE_OF_ROW = sql<string>`
  case when info is null then null else jsonb_strip_nulls(jsonb_build_object(
    'cpu', info -> 'cpu', 'memoryBytes', info -> 'memoryBytes',
    'diskBytes', info -> 'diskBytes', 'gpus', info -> 'gpus',
    'unknownFacts', nullif(jsonb_path_query_array(info,
      '$.unknownFacts[*] ? (@.fact == "gpus" && !exists(@.knownTime))'), '[]')
  )) end`;

/** The columns of a node's holds. */
export function holdsColumns(holds: readonly Hold[]) {
  return {
    holds: JSON.stringify(holds),
    disturbed_at: sql<Date | null>`case when ${isCalmed(holds)} then now() else disturbed_at end`,
    ...(holds.length > 0
      ? {}
      : { eligible_since: sql<Date>`case when holds = '[]'::jsonb then eligible_since else now() end` }),
  };
}

/** Whether the row has a drain or a hold for flapping that these holds lack. */
function isCalmed(holds: readonly Hold[]) {
  const kinds = holds.map(({ kind }) => kind);
  const lifted = (["DRAIN", "FLAPPING"] as const).filter((kind) => !kinds.includes(kind));
  return sql<boolean>`jsonb_path_query_array(holds, '$[*].kind') ?| ${lifted}::text[]`;
}

/**
 * The outcome of a report: it is saved, the record says the same but for what moves by itself, or a later one will do.
 */
export type SavedInfo = "saved" | "known" | "later";

/** What is done with a report, and the node's holds if the report changes them; null where they stay. */
interface PlannedReport extends ReportPlan {
  readonly holds: readonly Hold[] | null;
}

/**
 * Write what a node reports of itself if weighReport() says so; amounts that moved are written at most every ten
 * minutes. The hold for the conditions that it reports is placed and lifted here and nowhere else. The node's row is
 * locked. The caller compares labels, which it has locked, to tell what changed.
 */
export async function saveInfo(tx: Tx, id: string, report: InfoReport): Promise<SavedInfo> {
  const { info, digest, summary, agentLabels } = report;
  const plan = await planReport(tx, id, report);
  if (plan?.verdict === "known") return "known";
  if (plan?.verdict === "save-if-rested" && (await hasChangedOfLate(tx, id))) return "later";
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

/** Null for a node that is not there. */
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
