import type {
  ConnectionState,
  HealthState,
  MembershipState,
  Node,
  NodeType,
  SchedulingState,
  Selector,
} from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Db } from "../database/store.ts";
import { readNodes } from "./read-nodes.ts";
import { type LabelCondition, toCondition } from "./selector-sql.ts";

/**
 * The columns that a listing can be sorted by. Nodes with the same value are sorted by id, in the same direction.
 */
export type NodeOrderColumn = keyof typeof ORDERS;

/** Which nodes to list. An absent field filters nothing; an empty list matches nothing. */
export interface NodeFilter {
  readonly types?: readonly NodeType[];
  readonly memberships?: readonly MembershipState[];
  /** Works like the domain's hasStatus(): health states match compute nodes, connection states match any node. */
  readonly statuses?: readonly (HealthState | ConnectionState)[];
  readonly schedulings?: readonly SchedulingState[];
  /** Connection states that match any node. A node must match both these and `statuses`. */
  readonly connections?: readonly ConnectionState[];
  /** A selector of effective labels. */
  readonly selector?: Selector;
  readonly ids?: readonly string[];
  /**
   * Words in lower case. Each word must occur in the id, the host name, an effective label, or the model of the
   * processor or a GPU.
   */
  readonly words?: readonly string[];
  /** Matches nodes with an interface that has one of these addresses. */
  readonly hardwareAddresses?: readonly string[];
  readonly hostnames?: readonly string[];
}

/** The position after a page's last node, as plain data that a page token can contain. */
export interface NodeCursor {
  /** The last node's value in the order column, with times in milliseconds; absent when ordered by id. */
  readonly value?: string | number;
  readonly id: string;
}

/** Which page of a listing to read. */
export interface ListNodesOptions {
  readonly filter: NodeFilter;
  readonly orderBy: { readonly column: NodeOrderColumn; readonly descending: boolean };
  /** Limit of nodes. */
  readonly limit: number;
  /** The cursor of the previous page's last node, with the same filter and order; null for the first page. */
  readonly after: NodeCursor | null;
}

/** A listed node, and the cursor to start the next page after it. */
export interface ListedNode {
  readonly node: Node;
  readonly cursor: NodeCursor;
}

/**
 * Read the nodes of a listing in pieces, so that memory is bounded, and at most `limit` nodes in total. Nodes that
 * are added, removed or changed in between may be missing. A node whose position does not change never appears
 * twice.
 */
export async function* readListing(db: Db, options: ListNodesOptions): AsyncGenerator<readonly ListedNode[]> {
  let { after, limit: left } = options;
  while (left > 0) {
    const wanted = Math.min(left, NODES_OF_ONE_READ);
    const cursors = await findCursors(db, { ...options, after }, wanted);
    for await (const listed of readAtCursors(db, cursors)) {
      left -= listed.length;
      yield listed;
    }
    if (cursors.length < wanted) return;
    after = cursors.at(-1) ?? after;
  }
}

/** Maximum number of nodes in one read: a full page, and the extra node that shows whether another page follows. */
const NODES_OF_ONE_READ = 1_001;

/** List the ids of a listing's nodes, in order, without reading the nodes themselves. */
export async function listNodeIds(db: Db, options: ListNodesOptions): Promise<readonly string[]> {
  return (await findCursors(db, options, options.limit)).map(({ id }) => id);
}

/** Find the nodes of a listing and their positions in it. */
async function findCursors(db: Db, options: ListNodesOptions, limit: number): Promise<readonly NodeCursor[]> {
  const { filter, orderBy, after } = options;
  const conditions = (filter.selector ?? []).map(toCondition);
  const required = byKey(conditions.filter(({ kind }) => kind === "present"));
  const joined = required.slice(0, MOST_JOINED);
  const direction = orderBy.descending ? sql`desc` : sql`asc`;
  const order = ORDERS[orderBy.column];
  const where = [
    ...stateConditions(filter),
    ...(filter.words ?? []).map(hasWord),
    ...joined.map((ofKey, index) => areMet(ofKey, sql.ref(aliasOf(index)))),
    ...haveAll(required.slice(MOST_JOINED)),
    ...haveNone(conditions.filter(({ kind }) => kind === "absent")),
    ...(after === null ? [] : startAfter(orderBy, after, joined.length)),
  ];
  const page = sql<{ id: string; sort: unknown }>`
    select n.id, ${order.column} as sort
    from nodes as n
    join node_sessions as s on s.node_id = n.id
    ${sql.join(joined.map(labelJoin), sql` `)}
    where ${where.length === 0 ? sql`true` : sql.join(where, sql` and `)}
    order by ${orderBy.column === "id" ? sql`` : sql`${order.column} ${direction},`}
      ${order.id} ${direction}
    limit ${limit}`;
  const { rows } = await page.execute(db);
  return rows.map(({ id, sort }) => (orderBy.column === "id" ? { id } : { id, value: toCursorValue(sort) }));
}

/** Read the nodes at these positions. Nodes that have been removed since are left out. */
async function* readAtCursors(db: Db, positions: readonly NodeCursor[]): AsyncGenerator<readonly ListedNode[]> {
  const cursors = new Map(positions.map((cursor) => [cursor.id, cursor]));
  for await (const nodes of readNodes(db, [...cursors.keys()])) {
    yield nodes.flatMap((node) => {
      const cursor = cursors.get(node.id);
      return cursor === undefined ? [] : [{ node, cursor }];
    });
  }
}

interface Order {
  readonly column: RawBuilder<unknown>;
  /** The id column in the same table as `column`, so that one index serves both. */
  readonly id: RawBuilder<unknown>;
  /** The SQL type to cast a cursor's value to. */
  readonly type: RawBuilder<unknown>;
}

const ORDERS = {
  id: ofNodes("id", sql`text`),
  type: ofNodes("type", sql`text`),
  approval: ofNodes("membership", sql`text`),
  status: { column: sql`s.status`, id: sql`s.node_id`, type: sql`text` },
  scheduling: { column: sql`scheduling_of(n.holds)`, id: sql`n.id`, type: sql`text` },
  cores: ofNodes("cores", sql`integer`),
  memory: ofNodes("memory_bytes", sql`bigint`),
  disk: ofNodes("disk_bytes", sql`bigint`),
  gpus: ofNodes("gpus", sql`integer`),
  created: ofNodes("created_at", sql`timestamptz`),
} as const satisfies Readonly<Record<string, Order>>;

/** All columns that a listing can be sorted by. */
export const NODE_ORDER_COLUMNS = Object.keys(ORDERS) as readonly NodeOrderColumn[];

function ofNodes(column: string, type: RawBuilder<unknown>): Order {
  return { column: sql.ref(`n.${column}`), id: sql`n.id`, type };
}

function stateConditions(filter: NodeFilter): RawBuilder<SqlBool>[] {
  return [
    isOneOf(sql`n.type`, filter.types),
    isOneOf(sql`n.membership`, filter.memberships),
    statusCondition(filter.statuses),
    isOneOf(sql`scheduling_of(n.holds)`, filter.schedulings),
    isOneOf(sql`s.connection`, filter.connections),
    isOneOf(sql`n.id`, filter.ids),
    isOneOf(sql`(n.info ->> 'hostname')`, filter.hostnames),
    hardwareCondition(filter.hardwareAddresses),
  ].flat();
}

function hardwareCondition(addresses: NodeFilter["hardwareAddresses"]): RawBuilder<SqlBool>[] {
  if (addresses === undefined) return [];
  const wanted = JSON.stringify({ addresses });
  return [sql<SqlBool>`jsonb_path_exists(n.info, '$.interfaces[*].mac ? (@ == $addresses[*])', ${wanted}::jsonb)`];
}

function statusCondition(statuses: NodeFilter["statuses"]): RawBuilder<SqlBool>[] {
  if (statuses === undefined) return [];
  const isConnection = (status: string) => status === "CONNECTED" || status === "DISCONNECTED";
  const connections = statuses.filter(isConnection);
  const healths = statuses.filter((status) => !isConnection(status));
  if (connections.length === 0) return isOneOf(sql`s.status`, healths);
  if (healths.length === 0) return isOneOf(sql`s.connection`, connections);
  const either = [...isOneOf(sql`s.status`, healths), ...isOneOf(sql`s.connection`, connections)];
  return [sql<SqlBool>`(${sql.join(either, sql` or `)})`];
}

function isOneOf(column: RawBuilder<unknown>, values: readonly string[] | undefined): RawBuilder<SqlBool>[] {
  if (values === undefined) return [];
  const [only] = values;
  // Use equality for a single value, because Postgres can then use the order of an index on (column, id). It cannot
  // do so with a list of values.
  if (only !== undefined && values.length === 1) return [sql<SqlBool>`${column} = ${only}`];
  return [sql<SqlBool>`${column} = any(${values}::text[])`];
}

/** Check the cheapest condition first, because the next ones must parse the node's reported information. */
function hasWord(word: string): RawBuilder<SqlBool> {
  const within = (text: RawBuilder<unknown>) => sql<SqlBool>`strpos(lower(${text}), ${word}) > 0`;
  return sql<SqlBool>`(
    ${within(sql`n.id`)}
    or ${within(sql`n.info ->> 'hostname'`)}
    or ${within(sql`n.info #>> '{cpu,model}'`)}
    or exists (
      select from jsonb_path_query(n.info, '$.gpus[*].name') as model where ${within(sql`model #>> '{}'`)}
    )
    or exists (
      select from node_labels as l
      where l.node_id = n.id and l.effective and ${within(sql`l.key || '=' || l.value`)}
    )
  )`;
}

function aliasOf(index: number): string {
  return `l${index}`;
}

/**
 * The number of labels of a selector that are joined. Planning takes much longer with each join, and a selector can
 * have 100 conditions.
 */
const MOST_JOINED = 4;

/** The conditions of a selector that a label must meet, grouped by the key of the label. */
function byKey(conditions: readonly LabelCondition[]): readonly (readonly LabelCondition[])[] {
  const keys = new Set(conditions.map(({ key }) => key));
  return [...keys].map((key) => conditions.filter((condition) => condition.key === key));
}

function labelJoin(_: readonly LabelCondition[], index: number): RawBuilder<unknown> {
  const label = sql.ref(aliasOf(index));
  // Join the label. The join adds no rows, because at most one label of a key is effective.
  return sql`join node_labels as ${label} on ${label}.node_id = n.id`;
}

/** Whether a label has the key of a condition, and the value is as the condition requires. */
function isMet({ key, value }: LabelCondition, label: RawBuilder<unknown>): RawBuilder<SqlBool> {
  return sql<SqlBool>`${label}.effective and ${label}.key = ${key}
    and ${value === null ? sql`true` : value(sql`${label}.value`)}`;
}

/** Whether a label meets all conditions of its key. */
function areMet(ofKey: readonly LabelCondition[], label: RawBuilder<unknown>): RawBuilder<SqlBool> {
  return sql.join(
    ofKey.map((condition) => isMet(condition, label)),
    sql` and `,
  );
}

/** The node has a label for each of these keys. At most one label of a key is effective, so their number decides. */
function haveAll(keys: readonly (readonly LabelCondition[])[]): RawBuilder<SqlBool>[] {
  if (keys.length === 0) return [];
  const met = keys.map((ofKey) => sql<SqlBool>`(${areMet(ofKey, sql`l`)})`);
  return [
    sql<SqlBool>`${keys.length} = (
      select count(*) from node_labels as l where l.node_id = n.id and l.effective and (${sql.join(met, sql` or `)})
    )`,
  ];
}

/**
 * The node has no label for any of these conditions. They are one part of the query, because planning takes much longer
 * with each part, and a selector can have 100 conditions.
 */
function haveNone(conditions: readonly LabelCondition[]): RawBuilder<SqlBool>[] {
  if (conditions.length === 0) return [];
  const met = conditions.map((condition) => sql<SqlBool>`(${isMet(condition, sql`l`)})`);
  // With an offset, Postgres looks up the labels of each node that it reads, instead of reading all labels first.
  return [
    sql<SqlBool>`not exists (
      select from node_labels as l where l.node_id = n.id and l.effective and (${sql.join(met, sql` or `)}) offset 0
    )`,
  ];
}

function startAfter(orderBy: ListNodesOptions["orderBy"], after: NodeCursor, joined: number): RawBuilder<SqlBool>[] {
  const beyond = orderBy.descending ? sql`<` : sql`>`;
  if (orderBy.column === "id") {
    // Repeat the condition for every table. Postgres knows that the ids of the tables are equal, but it does not
    // apply an inequality for one table to the others. It would scan the others from their start.
    const labels = Array.from({ length: joined }, (_, index) => sql`${sql.ref(aliasOf(index))}.node_id`);
    return [sql`n.id`, sql`s.node_id`, ...labels].map((id) => sql<SqlBool>`${id} ${beyond} ${after.id}`);
  }
  const { column, id, type } = ORDERS[orderBy.column];
  const value = orderBy.column === "created" ? new Date(Number(after.value)) : after.value;
  return [sql<SqlBool>`(${column}, ${id}) ${beyond} (${value}::${type}, ${after.id})`];
}

function toCursorValue(value: unknown): string | number {
  if (value instanceof Date) return value.getTime();
  return typeof value === "string" ? value : Number(value);
}
