import { toBinary } from "@bufbuild/protobuf";
import { type NodeOutcome, NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { etagRefusal, type NewEvent, type NodeDecision, type Node as StoredNode } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import { auditOf, commit, type Operation } from "@rollcall/operations";
import {
  type Change,
  countThatFit,
  findKnownNodes,
  getNodes,
  hasSchedulerLed,
  lockNodes,
  lockWithSessions,
  type NewAuditEntry,
  type NodeFilter,
  nodeNotFound,
  type SelectedIds,
  saveNodeEffects,
  selectNodeIds,
  type Tx,
  thoseThatMatch,
} from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";
import { type DecisionOnNode, readFacts } from "./node-decision.ts";
import { doneOutcome, ONE_CODEC, type Operated, PART_CODEC, type Part, refusedOutcome } from "./node-outcomes.ts";

/** An operation on nodes, with a separate decision for each. */
export interface NodeOperation extends Operation {
  readonly decision: DecisionOnNode;
  /** The etag that a single node must have; "" for any. */
  readonly etag: string;
}

/** The nodes that an operator selected. */
export interface NodeSelection {
  /** Exact ids; empty when the selection is only a filter. */
  readonly names: readonly string[];
  readonly filter: NodeFilter;
  /** Whether the selection is one node by its name. A refusal then fails the call. */
  readonly isOne: boolean;
  /** The node after which the selection continues; "" at the start. */
  readonly after: string;
}

/** Maximum number of nodes per transaction. The transaction locks their rows, so their registrations wait for it. */
const NODES_A_TRANSACTION = 100;
/** Maximum number of nodes per call, low enough to stay within the call's deadline. */
const NODES_A_CALL = 500;
/**
 * Maximum size in bytes of the outcomes of one transaction. A call whose outcomes exceed this size starts no further
 * transaction. The response then still has room for new labels on a hundred nodes.
 */
const OUTCOME_BYTES = 524_288;

/**
 * Carry out a decision on each node of a selection, in order of id, several per transaction. States, events, audit
 * entries and the response for the request id are written together while the nodes' rows are locked, so that no
 * concurrent change can undo or overtake them. Each transaction is remembered separately, so an interrupted call can
 * be repeated.
 *
 * A refusal becomes the outcome of its node. For a selection of one node it is thrown instead: NODE_NOT_FOUND,
 * ETAG_MISMATCH, or the reason of the decision.
 */
export async function operate(
  services: Pick<AdminServices, "store">,
  operation: NodeOperation,
  selection: NodeSelection,
): Promise<Operated> {
  const outcomes: NodeOutcome[] = [];
  let from: Pick<Part, "ids" | "next"> = { ids: null, next: selection.after };
  let bytes = 0;
  for (let done = 0; done < NODES_A_CALL; done += NODES_A_TRANSACTION) {
    const { ids, next: after } = from;
    if (after === null || bytes >= OUTCOME_BYTES) break;
    const options = {
      codec: selection.isOne ? ONE_CODEC : PART_CODEC,
      part: selection.isOne ? "" : `#${after}`,
      placesBans: operation.decision.reads.has("bans"),
    };
    const part = await commit(services, operation, options, (tx) =>
      operatePart(tx, operation, { selection, ids, after }),
    );
    outcomes.push(...part.outcomes);
    for (const it of part.outcomes) bytes += toBinary(NodeOutcomeSchema, it).length;
    from = part;
  }
  return { outcomes, next: from.next };
}

/**
 * Carry out a decision on nodes whose rows are locked. Returns an outcome and an audit entry for each node, and the
 * events of nodes that change. Throws the refusal when the selection is a single node.
 */
export async function operateOnLocked(
  tx: Tx,
  operation: NodeOperation,
  nodes: readonly StoredNode[],
  isOne: boolean,
): Promise<Change<readonly NodeOutcome[]>> {
  const decided = await decideAll(tx, operation, nodes);
  const [first] = decided;
  if (isOne && first?.result.ok === false) throw refusalError(first.result.refusal, first.node.id);
  const { events, changed } = operation.validateOnly ? NOTHING : await save(tx, decided);
  // Return a removed node in its last state.
  const after = new Map((await getNodes(tx, changed)).map((node) => [node.id, node]));
  return {
    result: decided.map(({ node, result }) =>
      result.ok ? doneOutcome(after.get(node.id) ?? node) : refusedOutcome(node.id, result.refusal),
    ),
    events,
    audit: operation.validateOnly ? [] : decided.map((it) => auditRow(operation, it)),
  };
}

/** A node, and what was decided about it. */
interface Decided {
  readonly node: StoredNode;
  readonly result: NodeDecision;
}

async function decideAll(tx: Tx, operation: NodeOperation, nodes: readonly StoredNode[]): Promise<readonly Decided[]> {
  const { decision, etag, by } = operation;
  if (decision.guards.needsScheduler === true && !(await hasSchedulerLed(tx))) throw noScheduler();
  const factsOf = await readFacts(tx, decision.reads, nodes);
  return nodes.map((node) => ({
    node,
    result: etagRefusal(node, etag) ?? decision.decide(node, by, factsOf(node)),
  }));
}

/** What was saved: the events to append, and the ids of changed nodes. */
interface Saved {
  readonly events: readonly NewEvent[];
  readonly changed: readonly string[];
}

const NOTHING: Saved = { events: [], changed: [] };

async function save(tx: Tx, decided: readonly Decided[]): Promise<Saved> {
  const events: NewEvent[] = [];
  const changed: string[] = [];
  for (const { node, result } of decided) {
    if (!result.ok || result.effects.length === 0) continue;
    await saveNodeEffects(tx, node, result.effects);
    events.push(...result.events);
    changed.push(node.id);
  }
  return { events, changed };
}

function auditRow(operation: NodeOperation, { node, result }: Decided): NewAuditEntry {
  return result.ok ? auditOf(operation, node.id) : auditOf(operation, node.id, result.refusal.reason);
}

interface PartRequest {
  readonly selection: NodeSelection;
  readonly ids: readonly string[] | null;
  readonly after: string;
}

async function operatePart(tx: Tx, operation: NodeOperation, request: PartRequest): Promise<Change<Part>> {
  const { selection, after } = request;
  const { isOne, filter } = selection;
  const isNamed = request.ids === null && selection.names.length > 0;
  const named = isNamed ? await findKnownNodes(tx, selection.names) : { ids: request.ids, refusals: [] };
  const [unknown] = named.refusals;
  if (isOne && unknown !== undefined) throw refusalError(unknown.refusal, unknown.name);
  const selected = await selectNodeIds(tx, filter, { ids: named.ids, after, limit: NODES_A_TRANSACTION });
  const { ids, next } = isOne ? selected : await fitting(tx, selected);
  const locked = await (operation.decision.guards.locksSessions === true ? lockWithSessions : lockNodes)(tx, ids);
  const [name = ""] = selection.names;
  if (isOne && locked.length === 0) throw refusalError(await nodeNotFound(tx, name), name);
  // Select again, because labels and states may have changed while this call waited for the locks.
  const lockedIds = locked.map(({ id }) => id);
  const chosen = await thoseThatMatch(tx, filter, lockedIds);
  const nodes = locked.filter(({ id }) => chosen.has(id));
  const change = await operateOnLocked(tx, operation, nodes, isOne);
  const refused = named.refusals.map((it) => refusedOutcome(it.name, it.refusal));
  return { ...change, result: { outcomes: [...refused, ...change.result], ids: named.ids, next } };
}

/** Limit the selected nodes to those whose outcomes fit into one message. */
async function fitting(tx: Tx, { ids, next }: SelectedIds): Promise<SelectedIds> {
  const count = await countThatFit(tx, ids, OUTCOME_BYTES);
  const last = ids[count - 1];
  return count === ids.length || last === undefined ? { ids, next } : { ids: ids.slice(0, count), next: last };
}

function noScheduler() {
  const message = "no scheduler has ever run, so nothing would move the work; start one, or cordon the node";
  return refuse("NO_SCHEDULER", message, {});
}
