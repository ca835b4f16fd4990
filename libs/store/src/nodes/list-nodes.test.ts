import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { effectiveLabels, hasStatus, matches, type Node, parseSelector, type Selector } from "@rollcall/domain";
import { addNode, createTestDatabase, saveHolds, saveMark, seededRandom, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { listPage, type NodePage } from "../../test/list-page.ts";
import type { Store } from "../database/store.ts";
import type { ListNodesOptions, NodeCursor, NodeFilter, NodeOrderColumn } from "./list-nodes.ts";
import { getNode } from "./nodes.ts";
import { removeNode } from "./save-node.ts";

let database: TestDatabase;
let store: Store;
let all: readonly Node[];

const SEED = 7;
const COUNT = 60;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  const random = seededRandom(SEED);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  for (let number = 0; number < COUNT; number += 1) {
    const id = `${pick(["a", "B", "c"])}${number}`;
    const orchestrator = number % 15 === 0;
    await addNode(store, id, {
      type: orchestrator ? "ORCHESTRATOR" : "COMPUTE",
      membership: orchestrator ? "APPROVED" : pick(["PENDING", "APPROVED", "REJECTED"]),
      cores: pick([1, 2, 64]),
      memoryBytes: pick([1, 2 ** 40]),
      diskBytes: pick([1, 2 ** 50]),
      gpus: pick([0, 1]),
      labels: {
        ...(random() < 0.5 ? { zone: pick(["a", "b"]) } : {}),
        ...(random() < 0.5 ? { size: pick(["1", "10", "9", "many", "007"]) } : {}),
        ...Object.fromEntries(
          [1, 2, 3, 4, 5, 6].flatMap((n) => (random() < 0.9 ? [[`disk${n}`, pick(["a", "b"])]] : [])),
        ),
      },
    });
    await sql`
      update node_sessions
      set health = ${pick(["HEALTHY", "UNHEALTHY", "UNKNOWN"])},
        connection = ${pick(["CONNECTED", "DISCONNECTED"])}
      where node_id = ${id}`.execute(store.db);
    const by = { sinceMs: 1, message: "", actor: "system" };
    if (random() < 0.2) {
      await store.transaction((tx) => saveHolds(tx, id, [{ kind: "OPERATOR", ...by }]));
    }
    if (!orchestrator && random() < 0.2) await store.transaction((tx) => saveMark(tx, id, by));
    if (random() < 0.2) {
      await sql`update node_labels set effective = false where node_id = ${id} and key = 'zone'`.execute(store.db);
      await sql`insert into node_labels values (${id}, 'operator', 'zone', 'op', true)`.execute(store.db);
    }
  }
  const ids = await store.db.selectFrom("nodes").select("id").execute();
  const nodes = await Promise.all(ids.map(({ id }) => getNode(store.db, id)));
  all = nodes.flatMap((node) => node ?? []);
});

afterAll(async () => {
  await database.drop();
});

function statusOf(node: Node): string {
  return node.type === "ORCHESTRATOR" ? node.connection.state : node.health.state;
}

const SORT_VALUES: Readonly<Record<NodeOrderColumn, (node: Node) => string | number>> = {
  id: (node) => node.id,
  type: (node) => node.type,
  approval: (node) => node.membership.state,
  status: statusOf,
  scheduling: (node) => node.scheduling.state,
  cores: (node) => node.summary.cores,
  memory: (node) => node.summary.memoryBytes,
  disk: (node) => node.summary.diskBytes,
  gpus: (node) => node.summary.gpus,
  created: (node) => node.createdAtMs,
};

function selectorOf(text: string): Selector {
  const parsed = parseSelector(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.selector;
}

/** Compute the expected listing naively. Returns its ids. */
function expected(filter: NodeFilter, orderBy: ListNodesOptions["orderBy"]): readonly string[] {
  const { types, memberships, statuses, schedulings, selector = [], ids } = filter;
  const isWanted = (node: Node) =>
    (types?.includes(node.type) ?? true) &&
    (memberships?.includes(node.membership.state) ?? true) &&
    (statuses?.some((status) => hasStatus(node, status)) ?? true) &&
    (schedulings?.includes(node.scheduling.state) ?? true) &&
    (ids?.includes(node.id) ?? true) &&
    matches(selector, new Map(effectiveLabels(node.labels).map(({ key, value }) => [key, value])));
  const sign = orderBy.descending ? -1 : 1;
  const sortValueOf = SORT_VALUES[orderBy.column];
  const compare = (left: string | number, right: string | number) => (left === right ? 0 : left < right ? -1 : 1);
  return all
    .filter(isWanted)
    .toSorted((left, right) => sign * (compare(sortValueOf(left), sortValueOf(right)) || compare(left.id, right.id)))
    .map(({ id }) => id);
}

/** Read every page of a listing. Returns the ids. */
async function listAll(
  filter: NodeFilter,
  orderBy: ListNodesOptions["orderBy"],
  limit: number,
): Promise<readonly string[]> {
  const ids: string[] = [];
  let after: NodeCursor | null = null;
  do {
    const page: NodePage = await listPage(store.db, { filter, orderBy, limit, after });
    expect(page.nodes.length).toBeLessThanOrEqual(limit);
    ids.push(...page.nodes.map(({ id }) => id));
    // Convert the cursor to JSON and back, because a page token contains it as text.
    after = page.next === null ? null : (JSON.parse(JSON.stringify(page.next)) as NodeCursor);
  } while (after !== null);
  return ids;
}

const BY_ID = { column: "id", descending: false } as const;
const COLUMNS = Object.keys(SORT_VALUES) as NodeOrderColumn[];

const FILTERS: readonly (readonly [string, NodeFilter])[] = [
  ["nothing", {}],
  ["one type", { types: ["COMPUTE"] }],
  ["one membership", { memberships: ["PENDING"] }],
  ["two memberships", { memberships: ["PENDING", "REJECTED"] }],
  ["a health word", { statuses: ["UNHEALTHY"] }],
  ["a connection word", { statuses: ["CONNECTED"] }],
  ["both connection words", { statuses: ["CONNECTED", "DISCONNECTED"] }],
  ["words of both kinds", { statuses: ["HEALTHY", "CONNECTED"] }],
  ["scheduling", { schedulings: ["INELIGIBLE"] }],
  ["an empty list", { memberships: [] }],
  ["ids", { ids: ["nobody", "a0", "B0", "c0"] }],
  ["several states", { types: ["COMPUTE"], memberships: ["APPROVED"], statuses: ["HEALTHY"] }],
  ...[
    "zone=a",
    "zone==op",
    "zone!=a",
    "zone in (a,op)",
    "zone notin (a,op)",
    "zone",
    "!zone",
    "size>8",
    "size<10",
    "size>6,size<8",
    "zone=a,size",
    "zone!=b,!size",
    "nothing=here",
    "zone,zone!=x,zone,size,zone in (a,op,b),size>6,size<8,zone!=b",
    "zone,zone,zone,zone,size>6,size<10,zone in (a,op,b),nothing",
    "disk1,disk2,disk3,disk4,disk5,disk6",
    "disk1,disk2,disk3,disk4,disk5 in (a,b),disk5=a,disk6!=a",
    "disk1,disk2,disk3,disk4,disk5=a,disk6=b,size>8",
    Array.from({ length: 100 }, (_, index) => `disk${index}`).join(","),
    `zone,${Array.from({ length: 99 }, (_, index) => `zone!=x${index}`).join(",")}`,
  ].map((text) => [text, { selector: selectorOf(text) }] as const),
  ["a selector and states", { selector: selectorOf("zone=b"), statuses: ["UNHEALTHY", "UNKNOWN"] }],
];

describe("readListing()", () => {
  it.each(FILTERS)("should filter by %s, page by page", async (_, filter) => {
    for (const descending of [false, true]) {
      const orderBy = { column: "id", descending } as const;
      expect(await listAll(filter, orderBy, 7)).toEqual(expected(filter, orderBy));
    }
  });

  it.each(COLUMNS)("should sort by %s in both directions, page by page", async (column) => {
    for (const descending of [false, true]) {
      const orderBy = { column, descending };
      for (const filter of [{}, { selector: selectorOf("zone"), types: ["COMPUTE"] as const }]) {
        expect(await listAll(filter, orderBy, 4)).toEqual(expected(filter, orderBy));
      }
    }
  });

  it("should return whole nodes", async () => {
    const page = await listPage(store.db, { filter: {}, orderBy: BY_ID, limit: 1, after: null });
    expect(page.nodes[0]).toEqual(all.find(({ id }) => id === page.nodes[0]?.id));
  });

  it("should have no next page when the last one is full", async () => {
    const options = { filter: {}, orderBy: BY_ID, after: null };
    expect((await listPage(store.db, { ...options, limit: COUNT })).next).toBeNull();
    expect((await listPage(store.db, { ...options, limit: COUNT - 1 })).next).not.toBeNull();
  });

  it("should continue at the same position when the cursor's node is gone", async () => {
    await addNode(store, "zz1");
    await addNode(store, "zz2");
    const filter = { ids: ["zz1", "zz2"] };
    const first = await listPage(store.db, { filter, orderBy: BY_ID, limit: 1, after: null });
    await store.transaction(async (tx) => {
      for (const node of first.nodes) await removeNode(tx, node, { actor: "system", reason: "X" });
    });
    const second = await listPage(store.db, {
      filter,
      orderBy: BY_ID,
      limit: 1,
      after: first.next,
    });
    expect(second.nodes.map(({ id }) => id)).toEqual(["zz2"]);
  });
});
