import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Requirement } from "@rollcall/domain";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { listPage } from "../../test/list-page.ts";
import type { Store, Tx } from "../database/store.ts";
import type { ListNodesOptions, NodeFilter } from "./list-nodes.ts";

let database: TestDatabase;
let store: Store;

const NODES = 20_000;
const PAGE = 50;
/**
 * Maximum number of rows that a page may read. A listed node is read from three tables and its labels. For a label
 * that one node in ten has, the query may skip nine other nodes. A full scan of any table, or a scan from its
 * start, reads five times as many rows.
 */
const MOST_ROWS = PAGE * 40;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  // Of every thousand nodes, make one PENDING, another UNHEALTHY and a third DISCONNECTED. Each zone has a tenth of
  // the nodes, and each rack has twenty nodes.
  await sql`
    insert into nodes (id, type, membership, membership_reason, membership_message, membership_actor)
    select
      'node-' || lpad(n::text, 6, '0'), 'COMPUTE',
      case when n % 1000 = 1 then 'PENDING' else 'APPROVED' end, 'SEEDED', '', 'system'
    from generate_series(0, ${NODES - 1}::integer) as n`.execute(store.db);
  await sql`
    insert into node_sessions (
      node_id, node_type, connection, connection_reason, connection_message, connection_actor,
      health, health_reason, health_message, health_actor
    )
    select
      id, type, case when id like '%003' then 'DISCONNECTED' else 'CONNECTED' end, 'SEEDED', '', 'system',
      case when id like '%002' then 'UNHEALTHY' else 'HEALTHY' end, 'SEEDED', '', 'system'
    from nodes`.execute(store.db);
  await sql`
    insert into node_labels (node_id, tier, key, value, effective)
    select id, 'agent', 'zone', right(id, 1), true from nodes
    union all
    select id, 'agent', 'rack', (right(id, 6)::integer / 20)::text, true from nodes`.execute(store.db);
  await sql`analyze`.execute(store.db);
});

afterAll(async () => {
  await database.drop();
});

/** Count the rows that are read for a page, from tables and through indexes, with the connection's own counters. */
async function rowsRead(options: Omit<ListNodesOptions, "limit">) {
  return store.transaction(async (tx) => {
    const before = await counters(tx);
    const page = await listPage(tx, { ...options, limit: PAGE });
    return { read: (await counters(tx)) - before, page };
  });
}

async function counters(tx: Tx): Promise<number> {
  const { rows } = await sql<{ read: number }>`
    select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::integer as read
    from pg_stat_xact_user_tables
    where relname in ('nodes', 'node_sessions', 'node_labels', 'node_identities')`.execute(tx);
  return rows[0]?.read ?? 0;
}

const equal = (key: string, value: string) => ({ operator: "=", key, value }) as const;

function ofHundred(requirement: (index: number) => Requirement): readonly Requirement[] {
  return Array.from({ length: 100 }, (_, index) => requirement(index));
}

const FILTERS: readonly (readonly [string, NodeFilter])[] = [
  ["nothing", {}],
  ["a common membership", { memberships: ["APPROVED"] }],
  ["a rare membership", { memberships: ["PENDING"] }],
  ["a common status", { statuses: ["HEALTHY"] }],
  ["a rare status", { statuses: ["UNHEALTHY"] }],
  ["a common connection", { statuses: ["CONNECTED"] }],
  ["a rare connection", { statuses: ["DISCONNECTED"] }],
  ["a rare status or a rare connection", { statuses: ["UNHEALTHY", "DISCONNECTED"] }],
  ["a common label", { selector: [equal("zone", "3")] }],
  ["a rare label", { selector: [equal("rack", "500")] }],
  ["two labels", { selector: [equal("zone", "3"), equal("rack", "500")] }],
  [
    "labels that a hundred conditions exclude",
    { selector: ofHundred((index) => ({ ...equal("rack", `x${index}`), operator: "!=" })) },
  ],
  ["a label that a hundred conditions require", { selector: ofHundred(() => ({ operator: "exists", key: "zone" })) }],
  ["a label and a state", { selector: [equal("zone", "3")], statuses: ["HEALTHY"] }],
];

describe("readListing() over many nodes", () => {
  it.each(FILTERS)("should read only the rows that its page needs when filtered by %s", async (_, filter) => {
    for (const descending of [false, true]) {
      const orderBy = { column: "id", descending } as const;
      const first = await rowsRead({ filter, orderBy, after: null });
      expect(first.page.nodes.length).toBeGreaterThan(0);
      expect(first.read).toBeLessThan(MOST_ROWS);
      const middle = await rowsRead({ filter, orderBy, after: { id: "node-010000" } });
      expect(middle.read).toBeLessThan(MOST_ROWS);
    }
  });

  it.each(["approval", "status", "cores", "memory", "created"] as const)(
    "should read only the rows that its page needs when sorted by %s",
    async (column) => {
      const orderBy = { column, descending: true };
      const first = await rowsRead({ filter: {}, orderBy, after: null });
      expect(first.read).toBeLessThan(MOST_ROWS);
      const second = await rowsRead({ filter: {}, orderBy, after: first.page.next });
      expect(second.read).toBeLessThan(MOST_ROWS);
    },
  );
});
