import {
  DEFAULT_HEALTH_POLICY,
  formatPolicyScope,
  type HealthPolicy,
  type Json,
  type PolicyEntry,
  type PolicyScope,
  parsePolicyScope,
  policyFacts,
  policyFromFacts,
  scopeOf,
} from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { HealthPoliciesTable } from "../database/schema.ts";
import type { Db, Tx } from "../database/store.ts";

/** A health policy as stored. */
export interface HealthPolicyRow {
  readonly entry: PolicyEntry;
  /** Changes with every change to the policy. */
  readonly etag: string;
  readonly actor: string;
  readonly message: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** All policies at one revision of the log. */
export interface HealthPolicySnapshot {
  readonly entries: readonly PolicyEntry[];
  /** The policies include all changes up to this revision, and no later changes. */
  readonly revision: bigint;
}

/** Read all policies in one statement, so that they come from one snapshot. */
export async function readHealthPolicies(db: Db): Promise<HealthPolicySnapshot> {
  const { rows } = await sql<{ revision: bigint; scope: string | null; facts: Json }>`
    select head.revision, p.scope, p.facts
    from (select coalesce(max(revision), 0) as revision from events) as head
    left join health_policies as p on true
    order by p.scope`.execute(db);
  const entries = rows.flatMap(({ scope, facts }) => {
    const entry = scope === null ? null : toEntry(scope, facts);
    return entry === null ? [] : [entry];
  });
  return { entries, revision: rows[0]?.revision ?? 0n };
}

/** Get one policy; null when it does not exist. */
export async function getHealthPolicy(db: Db, scope: PolicyScope): Promise<HealthPolicyRow | null> {
  const row = await db
    .selectFrom("health_policies")
    .selectAll()
    .where("scope", "=", formatPolicyScope(scope))
    .executeTakeFirst();
  return row === undefined ? null : toRecord(row);
}

/**
 * Read the policies after a scope in pieces: the default, groups by name, nodes by id.
 *
 * @param after the last scope of the previous page; empty to start at the first policy.
 */
export async function* readHealthPolicyList(db: Db, after: string): AsyncGenerator<readonly HealthPolicyRow[]> {
  let from = after;
  for (;;) {
    const rows = await db
      .selectFrom("health_policies")
      .selectAll()
      .where("scope", ">", from)
      .orderBy("scope")
      .limit(POLICIES_OF_ONE_READ)
      .execute();
    yield rows.flatMap((row) => toRecord(row) ?? []);
    const last = rows.at(-1);
    if (last === undefined || rows.length < POLICIES_OF_ONE_READ) return;
    from = last.scope;
  }
}

const POLICIES_OF_ONE_READ = 128;

/**
 * Block other changes to policies until the transaction ends, because the check for contradictions needs all
 * policies. Readers do not wait.
 */
export async function lockHealthPolicies(tx: Tx): Promise<void> {
  // Do not lock the table: the removal of a node deletes from this table, and would have to wait while the whole
  // fleet is checked.
  await sql`select pg_advisory_xact_lock(${HEALTH_POLICIES_LOCK}::bigint)`.execute(tx);
}

/** The key of the advisory lock for policies: any number that no other lock uses. */
const HEALTH_POLICIES_LOCK = "5139811260874521113";

/** Store a new or changed policy and return it. The caller has called lockHealthPolicies(). */
export async function saveHealthPolicy(
  tx: Tx,
  entry: PolicyEntry,
  by: { readonly actor: string; readonly message: string },
): Promise<HealthPolicyRow> {
  const scope = scopeOf(entry);
  const facts = JSON.stringify(policyFacts(entry));
  const node_id = scope.kind === "node" ? scope.nodeId : null;
  const row = await tx
    .insertInto("health_policies")
    .values({ scope: formatPolicyScope(scope), kind: scope.kind, node_id, facts, ...by })
    .onConflict((conflict) =>
      conflict.constraint("health_policies_pkey").doUpdateSet({
        facts,
        ...by,
        version: sql`health_policies.version + 1`,
        updated_at: sql`now()`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  const record = toRecord(row);
  if (record === null) throw new Error(`the policy ${row.scope} could not be read back`);
  return record;
}

/** Delete a policy. The caller has called lockHealthPolicies(). */
export async function deleteHealthPolicy(tx: Tx, scope: PolicyScope): Promise<void> {
  await tx.deleteFrom("health_policies").where("scope", "=", formatPolicyScope(scope)).execute();
}

/**
 * Store the policy from the health service's configuration, for processes that do not have that configuration.
 * Returns false when it is unchanged.
 */
export async function tellConfiguredPolicy(db: Db, instance: string, configured: HealthPolicy): Promise<boolean> {
  const text = JSON.stringify(configured);
  const { numAffectedRows } = await sql`
    insert into configured_health_policy (configured, instance) values (${text}::jsonb, ${instance})
    on conflict on constraint configured_health_policy_pkey
    do update set configured = excluded.configured, instance = excluded.instance, updated_at = now()
    where configured_health_policy.configured <> excluded.configured`.execute(db);
  return (numAffectedRows ?? 0n) > 0n;
}

/** Read the policy from the health service's configuration; the defaults until a replica has stored it. */
export async function configuredPolicy(db: Db): Promise<HealthPolicy> {
  const row = await db.selectFrom("configured_health_policy").select("configured").executeTakeFirst();
  // Fill in defaults, because a row from another release can lack fields.
  return { ...DEFAULT_HEALTH_POLICY, ...(row?.configured as Partial<HealthPolicy> | undefined) };
}

function toRecord(row: Omit<Selectable<HealthPoliciesTable>, "kind" | "node_id">): HealthPolicyRow | null {
  const entry = toEntry(row.scope, row.facts);
  if (entry === null) return null;
  const createdAtMs = row.created_at.getTime();
  return {
    entry,
    // Include the creation time, because a policy that is deleted and created again starts at version 1.
    etag: `${createdAtMs.toString(36)}-${row.version}`,
    actor: row.actor,
    message: row.message,
    createdAtMs,
    updatedAtMs: row.updated_at.getTime(),
  };
}

function toEntry(text: string, facts: Json): PolicyEntry | null {
  const scope = parsePolicyScope(text);
  return scope === null ? null : policyFromFacts(scope, facts);
}
