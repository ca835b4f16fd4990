import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type NodeOutcome, NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type Ban,
  bannedNamesOf,
  type CommandSource,
  type DrainIntent,
  etagRefusal,
  type NewEvent,
  type NodeDecision,
  type Node as StoredNode,
} from "@rollcall/domain";
import { type DecidedRefusal, refusalError, refuse } from "@rollcall/errors";
import { type AnswerCodec, auditOf, commit, type Operation } from "@rollcall/operations";
import {
  type Change,
  countThatFit,
  findBans,
  findKnownNodes,
  getDrains,
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
  storeTimeMs,
  type Tx,
  thoseThatMatch,
} from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";

/** Data that a decision reads in addition to the node. Empty unless declared in DecisionNeeds. */
export interface DecisionFacts {
  /** Bans on the node's id and keys. */
  readonly bans: readonly Ban[];
  /** The node's drain; null for none. */
  readonly drain: DrainIntent | null;
}

/** Decides about a node whose row stays locked until the change is written. */
export type DecideNode = (node: StoredNode, by: CommandSource, facts: DecisionFacts) => NodeDecision;

/** Which extra data a decision needs. */
export interface DecisionNeeds {
  /**
   * Whether the decision depends on the store's time and on detected states. If so, replicas must not change these
   * states in the meantime.
   */
  readonly health?: boolean;
  /** Whether the decision sets or lifts bans. Registrations are blocked during such a decision. */
  readonly bans?: boolean;
  /** Whether the decision reads drains. */
  readonly drains?: boolean;
  /** Whether the decision compares times with the store's clock. */
  readonly storeTime?: boolean;
  /**
   * Whether a scheduler must carry out the decision. Such a decision is refused with NO_SCHEDULER until a scheduler
   * has run.
   */
  readonly scheduler?: boolean;
}

/** An operation on nodes, with a separate decision for each. */
export interface NodeOperation extends Operation {
  readonly decide: DecideNode;
  readonly needs: DecisionNeeds;
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

/** The result for the nodes of a selection. */
export interface Operated {
  readonly outcomes: readonly NodeOutcome[];
  /** The node after which the next call continues; null at the end. */
  readonly next: string | null;
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
      placesBans: operation.needs.bans === true,
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
  const { needs } = operation;
  if (needs.scheduler === true && !(await hasSchedulerLed(tx))) throw noScheduler();
  const factsOf = await readFacts(tx, operation, nodes);
  const isTimed = needs.health === true || needs.storeTime === true;
  const by = isTimed ? { ...operation.by, atMs: await storeTimeMs(tx) } : operation.by;
  const refusals = new Map<string, DecidedRefusal>();
  const events: NewEvent[] = [];
  const audit: NewAuditEntry[] = [];
  const changed: string[] = [];
  for (const node of nodes) {
    const decided = etagRefusal(node, operation.etag) ?? operation.decide(node, by, factsOf(node));
    if (!decided.ok && isOne) throw refusalError(decided.refusal, node.id);
    if (!decided.ok) refusals.set(node.id, decided.refusal);
    if (operation.validateOnly) continue;
    audit.push(decided.ok ? auditOf(operation, node.id) : auditOf(operation, node.id, decided.refusal.reason));
    if (!decided.ok || decided.effects.length === 0) continue;
    await saveNodeEffects(tx, node, decided.effects);
    events.push(...decided.events);
    changed.push(node.id);
  }
  // Return a removed node in its last state.
  const after = new Map((await getNodes(tx, changed)).map((node) => [node.id, node]));
  const outcomes = nodes.map((node) => {
    const refusal = refusals.get(node.id);
    return refusal === undefined ? doneOutcome(after.get(node.id) ?? node) : refusedOutcome(node.id, refusal);
  });
  return { result: outcomes, events, audit };
}

/** The node of a single selection, as a response field. */
export function nodeOf([outcome]: readonly NodeOutcome[]): { readonly node?: Node } {
  return outcome?.result.case === "node" ? { node: outcome.result.value } : {};
}

/** The result of one transaction. */
interface Part extends Operated {
  /** Ids of the named nodes that exist, looked up once per call; null when the selection has no names. */
  readonly ids: readonly string[] | null;
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
  const locked = await (operation.needs.health === true ? lockWithSessions : lockNodes)(tx, ids);
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

/** Read what the decision needs for each node. */
async function readFacts(
  tx: Tx,
  operation: NodeOperation,
  nodes: readonly StoredNode[],
): Promise<(node: StoredNode) => DecisionFacts> {
  const bansOn = await readBans(tx, operation, nodes);
  const ids = nodes.map(({ id }) => id);
  const drains = operation.needs.drains === true ? await getDrains(tx, ids) : new Map<string, DrainIntent>();
  return (node) => ({ bans: bansOn(node), drain: drains.get(node.id) ?? null });
}

/** Read the bans on each node if the decision needs them. */
async function readBans(
  tx: Tx,
  { needs }: NodeOperation,
  nodes: readonly StoredNode[],
): Promise<(node: StoredNode) => readonly Ban[]> {
  if (needs.bans !== true) return () => [];
  const names = nodes.map(bannedNamesOf);
  const bans = await findBans(tx, {
    nodeIds: names.flatMap(({ nodeIds }) => nodeIds),
    fingerprints: names.flatMap(({ fingerprints }) => fingerprints),
  });
  return (node) => {
    const { fingerprints } = bannedNamesOf(node);
    return bans.filter((ban) => ban.nodeId === node.id || fingerprints.some((key) => key === ban.fingerprint));
  };
}

function doneOutcome(node: StoredNode): NodeOutcome {
  return create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value: nodeToProto(node) } });
}

function refusedOutcome(nodeId: string, refusal: DecidedRefusal): NodeOutcome {
  const { reason, message, metadata } = refusal;
  const value = { reason: ErrorReason[reason], message, metadata: { ...metadata } };
  return create(NodeOutcomeSchema, { nodeId, result: { case: "refusal", value } });
}

/** Stores a response about one node as the node itself. */
const ONE_CODEC: AnswerCodec<Part> = {
  encode: ({ outcomes: [outcome] }) => {
    if (outcome?.result.case !== "node") throw new Error("a refusal is not remembered");
    return toBinary(NodeSchema, outcome.result.value);
  },
  decode: (bytes) => {
    const node = fromBinary(NodeSchema, bytes);
    const outcome = create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value: node } });
    return { outcomes: [outcome], ids: [node.id], next: null };
  },
};

const PART_CODEC: AnswerCodec<Part> = {
  encode: ({ outcomes, ids, next }) => {
    const bytes = outcomes.map((it) => Buffer.from(toBinary(NodeOutcomeSchema, it)));
    const kept: SavedPart = { outcomes: bytes.map((it) => it.toString("base64")), ids, next };
    return Buffer.from(JSON.stringify(kept));
  },
  decode: (bytes) => {
    // The parsed value is valid, because encode() wrote these bytes.
    const { outcomes, ids, next } = JSON.parse(Buffer.from(bytes).toString()) as SavedPart;
    const read = outcomes.map((it) => fromBinary(NodeOutcomeSchema, Buffer.from(it, "base64")));
    return { outcomes: read, ids, next };
  },
};

interface SavedPart {
  readonly outcomes: readonly string[];
  readonly ids: readonly string[] | null;
  readonly next: string | null;
}
