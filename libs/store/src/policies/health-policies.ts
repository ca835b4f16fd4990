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

/** A health policy with what is remembered of it. */
export interface HealthPolicyRecord {
  readonly entry: PolicyEntry;
  /** Changes whenever the policy does. */
  readonly etag: string;
  readonly actor: string;
  readonly message: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Every policy there is, as of one revision of the log. */
export interface HealthPolicySnapshot {
  readonly entries: readonly PolicyEntry[];
  /** Events above it say something new. */
  readonly revision: bigint;
}

/** All policies, in one statement and so of one moment. */
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

/** One policy, or null. */
export async function getHealthPolicy(db: Db, scope: PolicyScope): Promise<HealthPolicyRecord | null> {
  const row = await db
    .selectFrom("health_policies")
    .selectAll()
    .where("scope", "=", formatPolicyScope(scope))
    .executeTakeFirst();
  return row === undefined ? null : toRecord(row);
}

/**
 * The policies after a scope, in pieces: the default, groups by name, nodes by id.
 *
 * @param after the scope with which the page before ended; empty for all.
 */
export async function* readHealthPolicyList(db: Db, after: string): AsyncGenerator<readonly HealthPolicyRecord[]> {
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
 * Keep others from changing policies until the transaction ends: whether a policy contradicts others is decided with
 * all of them in view. Readers do not wait.
 */
export async function lockHealthPolicies(tx: Tx): Promise<void> {
  // Not a lock of the table: removing a node deletes from it, and would wait for every node of the fleet to be looked
  // at.
  await sql`select pg_advisory_xact_lock(${HEALTH_POLICIES_LOCK}::bigint)`.execute(tx);
}

/** Any number that no other lock of the record has. */
const HEALTH_POLICIES_LOCK = "5139811260874521113";

/** Write a policy, new or not; the record as it is then. The policies are locked. */
export async function saveHealthPolicy(
  tx: Tx,
  entry: PolicyEntry,
  by: { readonly actor: string; readonly message: string },
): Promise<HealthPolicyRecord> {
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
  if (record === null) throw new Error(`the policy ${row.scope} cannot be read again`);
  return record;
}

/** Remove a policy. The policies are locked. */
export async function deleteHealthPolicy(tx: Tx, scope: PolicyScope): Promise<void> {
  await tx.deleteFrom("health_policies").where("scope", "=", formatPolicyScope(scope)).execute();
}

/** Tell what health's configuration says, for those who do not have it; false when that was known. */
export async function tellConfiguredPolicy(db: Db, instance: string, configured: HealthPolicy): Promise<boolean> {
  const text = JSON.stringify(configured);
  const { numAffectedRows } = await sql`
    insert into configured_health_policy (configured, instance) values (${text}::jsonb, ${instance})
    on conflict on constraint configured_health_policy_pkey
    do update set configured = excluded.configured, instance = excluded.instance, updated_at = now()
    where configured_health_policy.configured <> excluded.configured`.execute(db);
  return (numAffectedRows ?? 0n) > 0n;
}

/** What health's configuration says; the defaults as long as no replica has written it. */
export async function configuredPolicy(db: Db): Promise<HealthPolicy> {
  const row = await db.selectFrom("configured_health_policy").select("configured").executeTakeFirst();
  // One written by another release may lack fields.
  return { ...DEFAULT_HEALTH_POLICY, ...(row?.configured as Partial<HealthPolicy> | undefined) };
}

function toRecord(row: Omit<Selectable<HealthPoliciesTable>, "kind" | "node_id">): HealthPolicyRecord | null {
  const entry = toEntry(row.scope, row.facts);
  if (entry === null) return null;
  const createdAtMs = row.created_at.getTime();
  return {
    entry,
    // Deleted and made again, it counts from 1.
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
