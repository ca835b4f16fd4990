import { type Json, latestPair, RESOURCE_FACTS, UNKNOWN_REASONS, unknownResources } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import { isNotTold } from "../database/store-error.ts";
import { lacksFacts } from "../nodes/node-rows.ts";

/** A server that follows the database by streaming replication. */
export interface Standby {
  readonly name: string;
  readonly address: string;
  readonly state: string;
  readonly sync: string;
  /** How many bytes of WAL the standby has not replayed; null when Postgres does not show it. */
  readonly behindBytes: bigint | null;
  /** The replay lag that Postgres reports for the standby; null when there is nothing to replay. */
  readonly behindMs: number | null;
}

/** A wait event on which statements have been waiting for more than a second. */
export interface StatementWait {
  /** The type of the wait event, such as "Lock". */
  readonly type: string;
  readonly event: string;
  readonly statements: number;
  /** How long the oldest of these statements has been running. */
  readonly longestMs: number;
  /** For a lock: a session that holds the lock and does not itself wait. Empty for other wait events. */
  readonly heldBy: string;
}

/** What Postgres reports about itself. */
export interface StoreFacts {
  /** The version as a number, such as 160004. */
  readonly versionNumber: number;
  readonly version: string;
  readonly isStandby: boolean;
  readonly settings: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly sizeBytes: bigint;
  /** The standbys; null when the database user is not allowed to see them. */
  readonly standbys: readonly Standby[] | null;
}

/** How many nodes run one version of the agent. */
export interface AgentVersion {
  readonly version: string;
  readonly nodes: number;
}

/** Postgres settings that affect durability or speed. */
const SETTINGS = [
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "max_connections",
  "superuser_reserved_connections",
  "autovacuum",
  "default_transaction_read_only",
  "ssl",
] as const;

/** Query Postgres for its version, settings and standbys. */
export async function readStoreFacts(db: Db): Promise<StoreFacts> {
  // Run the queries concurrently, because the Postgres being diagnosed may be slow.
  const reading = sql<{ name: string; setting: string }>`
    select name, setting from pg_settings where name = any(${[...SETTINGS]}) order by name`.execute(db);
  const describing = sql<Omit<StoreFacts, "settings" | "standbys">>`
    select
      current_setting('server_version_num')::integer as "versionNumber",
      current_setting('server_version') as version,
      pg_is_in_recovery() as "isStandby",
      (select count(*)::integer from pg_stat_activity where backend_type = 'client backend') as connections,
      pg_database_size(current_database()) as "sizeBytes"`.execute(db);
  const [{ rows: settings }, { rows }] = await Promise.all([reading, describing]);
  const [row] = rows;
  if (row === undefined) throw new Error("the database did not return its version");
  return {
    ...row,
    settings: Object.fromEntries(settings.map(({ name, setting }) => [name, setting])),
    standbys: row.isStandby ? null : await readStandbys(db),
  };
}

/**
 * List the wait events on which statements in this database have been waiting for more than a second, longest first.
 * This reads none of Rollcall's tables, so it works while they are locked.
 */
export async function listStatementWaits(db: Db): Promise<readonly StatementWait[]> {
  const { rows } = await sql<StatementWait>`
    with waiting as (
      select pid, wait_event_type as type, coalesce(wait_event, '') as event,
        extract(epoch from clock_timestamp() - query_start) * 1000 as ms
      from pg_stat_activity
      where datname = current_database() and state = 'active' and pid <> pg_backend_pid()
        and wait_event_type in ('Lock', 'IPC', 'IO', 'LWLock')
        and query_start < clock_timestamp() - interval '1 second'
    ), first as (
      select distinct on (type, event) type, event, pid, count(*) over (partition by type, event) as statements, ms
      from waiting
      order by type, event, ms desc
    )
    select type, event, statements::integer as statements, ms::double precision as "longestMs",
      case when type = 'Lock' then coalesce((
        select format('pid %s (%s, %s)', held.pid, coalesce(nullif(held.application_name, ''), 'unnamed'), held.state)
        from pg_stat_activity as held
        where held.wait_event_type is distinct from 'Lock' and held.pid = any (
          select unnest(pg_blocking_pids(blocked.pid)) from waiting as blocked where blocked.type = 'Lock')
        limit 1
      ), '') else '' end as "heldBy"
    from first
    order by ms desc
    limit ${MOST_WAITS}`.execute(db);
  return rows;
}

/** Count approved nodes by agent version, most frequent first. */
export async function countAgentVersions(db: Db): Promise<readonly AgentVersion[]> {
  const { rows } = await sql<AgentVersion>`
    select coalesce(info ->> 'agentVersion', '') as version, count(*)::integer as nodes
    from nodes
    where type = 'COMPUTE' and membership = 'APPROVED'
    group by 1
    order by 2 desc, 1
    limit ${MOST_VERSIONS}`.execute(db);
  return rows;
}

/** A node whose identity two agents use alternately. */
export interface DuplicatedNode {
  readonly nodeId: string;
  /** The addresses of the two agents' streams, as HOST:PORT. */
  readonly addresses: readonly string[];
}

/** List nodes whose identity two agents use alternately, ordered by id, up to a limit. */
export async function listDuplicatedNodes(db: Db): Promise<readonly DuplicatedNode[]> {
  const rows = await db
    .selectFrom("node_sessions")
    .select(["node_id", "machines"])
    .where("duplicated_since", "is not", null)
    .orderBy("node_id")
    .limit(MOST_DUPLICATED)
    .execute();
  return rows.map(({ node_id: nodeId, machines }) => {
    return { nodeId, addresses: (latestPair(machines) ?? []).map(({ address }) => address) };
  });
}

/** List approved nodes that cannot end all processes of their executions, ordered by id, up to a limit. */
export async function listUncontainedNodes(db: Db): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly id: string }>`
    select id
    from nodes
    where type = 'COMPUTE' and membership = 'APPROVED'
      and info -> 'work' -> 'isolation' ->> 'containment' = 'WORK_CONTAINMENT_MISSING'
    order by id
    limit ${MOST_UNCONTAINED}`.execute(db);
  return rows.map(({ id }) => id);
}

/** A node whose agent cannot determine resources, and the reason codes of these resources. */
export interface UnknownResourcesRow {
  readonly nodeId: string;
  readonly reasons: readonly string[];
}

/** List approved nodes whose agents cannot determine a resource, ordered by id, up to a limit. */
export async function listUnknownResources(db: Db): Promise<readonly UnknownResourcesRow[]> {
  const { rows } = await sql<{ readonly id: string; readonly info: Parameters<typeof unknownResources>[0] }>`
    select n.id, n.info
    from nodes as n
    where n.type = 'COMPUTE' and n.membership = 'APPROVED' and ${lacksFacts(Object.values(RESOURCE_FACTS))}
    order by n.id
    limit ${MOST_UNKNOWN}`.execute(db);
  return rows.map(({ id: nodeId, info }) => {
    return { nodeId, reasons: unknownResources(info).map(({ resource }) => UNKNOWN_REASONS[resource]) };
  });
}

/** One way in which agents verify the control plane. */
export interface AgentTrustFacts {
  /** The NodeTrust that these nodes report, as JSON; null for nodes that do not report it. */
  readonly trust: Json | null;
  readonly nodes: number;
  /** The first of these nodes, ordered by id. */
  readonly nodeIds: readonly string[];
}

/** Count approved nodes by how their agents verify the control plane, most frequent first, up to a limit. */
export async function countAgentTrust(db: Db): Promise<readonly AgentTrustFacts[]> {
  const { rows } = await sql<AgentTrustFacts>`
    select
      info -> 'trust' as trust,
      count(*)::integer as nodes,
      (array_agg(id order by id))[1:${sql.lit(MOST_NAMED)}] as "nodeIds"
    from nodes
    where type = 'COMPUTE' and membership = 'APPROVED'
    group by 1
    order by 2 desc, 1
    limit ${MOST_TRUST}`.execute(db);
  return rows;
}

/**
 * Maximum number of different reports to return. Nodes can report anything, but the result must fit into one
 * response.
 */
const MOST_TRUST = 200;
const MOST_NAMED = 10;
const MOST_WAITS = 10;
const MOST_DUPLICATED = 100;
const MOST_UNCONTAINED = 100;
const MOST_UNKNOWN = 100;
const MOST_VERSIONS = 100;
const MOST_STANDBYS = 100;

async function readStandbys(db: Db): Promise<readonly Standby[] | null> {
  try {
    const { rows } = await sql<Standby & { readonly isTold: boolean }>`
      select
        coalesce(application_name, '') as name,
        coalesce(host(client_addr), '') as address,
        coalesce(state, '') as state,
        coalesce(sync_state, '') as sync,
        pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint as "behindBytes",
        (extract(epoch from replay_lag) * 1000)::double precision as "behindMs",
        state is not null as "isTold"
      from pg_stat_replication
      order by 1, 2
      limit ${MOST_STANDBYS}`.execute(db);
    // Return null without the role pg_monitor: the rows are visible, but their columns are null.
    if (rows.some(({ isTold }) => !isTold)) return null;
    return rows.map(({ isTold: _, ...standby }) => standby);
  } catch (error) {
    if (!isNotTold(error)) throw error;
    return null;
  }
}
