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
  type NodeRecord,
  type NodeVerdict,
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
  recordTimeMs,
  type SelectedIds,
  saveNodeEffects,
  selectNodeIds,
  type Tx,
  thoseThatMatch,
} from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";

/** What of the record a decision has beside the node; what it does not need is empty. */
export interface DecisionFacts {
  /** Those on its id and keys. */
  readonly bans: readonly Ban[];
  /** Null for a node that is not drained. */
  readonly drain: DrainIntent | null;
}

/** Decides the change of a node, whose row is locked until the change is written. */
export type DecideNode = (node: NodeRecord, by: CommandSource, facts: DecisionFacts) => NodeVerdict;

/** What of the record a decision needs beside the node. */
export interface DecisionNeeds {
  /** It decides by what was detected, which replicas must not change meanwhile, and by the record's time. */
  readonly health?: boolean;
  /** It places or lifts bans, and holds registrations off while it does. */
  readonly bans?: boolean;
  /** It decides about drains. */
  readonly drains?: boolean;
  /** It compares times with the record's. */
  readonly recordTime?: boolean;
  /** It needs a scheduler that does what is decided: refused with NO_SCHEDULER as long as none has ever run. */
  readonly scheduler?: boolean;
}

/** An operation on nodes, each of which is decided by itself. */
export interface NodeOperation extends Operation {
  readonly decide: DecideNode;
  readonly needs: DecisionNeeds;
  /** The etag that the one node must have; empty for any. */
  readonly etag: string;
  readonly validateOnly: boolean;
}

/** Which nodes an operator means. */
export interface NodeSelection {
  /** Exact ids; empty when only the filter chooses. */
  readonly names: readonly string[];
  readonly filter: NodeFilter;
  /** Whether one node is named without a selector: what is wrong with it fails the call. */
  readonly isOne: boolean;
  /** The node after which the selection goes on; empty at its beginning. */
  readonly after: string;
}

/** What happened to the nodes of a selection. */
export interface Operated {
  readonly outcomes: readonly NodeOutcome[];
  /** The node after which the next call goes on; null at the end. */
  readonly next: string | null;
}

/** Nodes of one transaction: their rows are locked together, and registrations of them wait. */
const NODES_A_TRANSACTION = 100;
/** Nodes of one call: as many as can be done well within its deadline. */
const NODES_A_CALL = 500;
/**
 * A call runs no further transaction once its outcomes have so many bytes, and a transaction takes at most as much:
 * labels that it adds to a hundred nodes still fit into the message with the outcomes of all.
 */
const OUTCOME_BYTES = 524_288;

/**
 * Carry out a decision on each node of a selection, in order of id, some in a transaction: states, events, audit rows
 * and the answer to the request id together, under the locks of the nodes' rows, so that nothing that happens at the
 * same time can undo or outrun it. Each transaction is remembered by itself, so a call that broke off can be repeated.
 *
 * A refusal is the outcome of its node alone. The one node of a selection of one is refused by a throw instead:
 * NODE_NOT_FOUND, ETAG_MISMATCH, or the reason that was decided.
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
 * Carry out a decision on nodes whose rows are locked: an outcome and an audit row for each, and the events of those
 * that change. Throws the refusal of the one node of a selection of one.
 */
export async function operateOnLocked(
  tx: Tx,
  operation: NodeOperation,
  nodes: readonly NodeRecord[],
  isOne: boolean,
): Promise<Change<readonly NodeOutcome[]>> {
  const { needs } = operation;
  if (needs.scheduler === true && !(await hasSchedulerLed(tx))) throw noScheduler();
  const factsOf = await readFacts(tx, operation, nodes);
  const isTimed = needs.health === true || needs.recordTime === true;
  const by = isTimed ? { ...operation.by, atMs: await recordTimeMs(tx) } : operation.by;
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
  // A removed node is returned as it last was.
  const after = new Map((await getNodes(tx, changed)).map((node) => [node.id, node]));
  const outcomes = nodes.map((node) => {
    const refusal = refusals.get(node.id);
    return refusal === undefined ? doneOutcome(after.get(node.id) ?? node) : refusedOutcome(node.id, refusal);
  });
  return { result: outcomes, events, audit };
}

/** The node of a selection of one, as a field of an answer. */
export function nodeOf([outcome]: readonly NodeOutcome[]): { readonly node?: Node } {
  return outcome?.result.case === "node" ? { node: outcome.result.value } : {};
}

/** What happened to the nodes of one transaction. */
interface Part extends Operated {
  /** The named nodes that exist, found once for the whole call; null when the selection names none. */
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
  // The labels and states by which they were chosen may have changed while the locks were waited for.
  const lockedIds = locked.map(({ id }) => id);
  const chosen = await thoseThatMatch(tx, filter, lockedIds);
  const nodes = locked.filter(({ id }) => chosen.has(id));
  const change = await operateOnLocked(tx, operation, nodes, isOne);
  const refused = named.refusals.map((it) => refusedOutcome(it.name, it.refusal));
  return { ...change, result: { outcomes: [...refused, ...change.result], ids: named.ids, next } };
}

/** As many of the selected nodes as fit into one message. */
async function fitting(tx: Tx, { ids, next }: SelectedIds): Promise<SelectedIds> {
  const count = await countThatFit(tx, ids, OUTCOME_BYTES);
  const last = ids[count - 1];
  return count === ids.length || last === undefined ? { ids, next } : { ids: ids.slice(0, count), next: last };
}

function noScheduler() {
  const message = "no scheduler has ever run here, so nothing would move the work; start one, or cordon the node";
  return refuse("NO_SCHEDULER", message, {});
}

/** What the decision needs of each of some nodes. */
async function readFacts(
  tx: Tx,
  operation: NodeOperation,
  nodes: readonly NodeRecord[],
): Promise<(node: NodeRecord) => DecisionFacts> {
  const bansOn = await readBans(tx, operation, nodes);
  const ids = nodes.map(({ id }) => id);
  const drains = operation.needs.drains === true ? await getDrains(tx, ids) : new Map<string, DrainIntent>();
  return (node) => ({ bans: bansOn(node), drain: drains.get(node.id) ?? null });
}

/** The bans on each of some nodes, where the decision needs them. */
async function readBans(
  tx: Tx,
  { needs }: NodeOperation,
  nodes: readonly NodeRecord[],
): Promise<(node: NodeRecord) => readonly Ban[]> {
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

function doneOutcome(node: NodeRecord): NodeOutcome {
  return create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value: nodeToProto(node) } });
}

function refusedOutcome(nodeId: string, refusal: DecidedRefusal): NodeOutcome {
  const { reason, message, metadata } = refusal;
  const value = { reason: ErrorReason[reason], message, metadata: { ...metadata } };
  return create(NodeOutcomeSchema, { nodeId, result: { case: "refusal", value } });
}

/** The answer about one node is remembered as the node. */
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
    const kept: KeptPart = { outcomes: bytes.map((it) => it.toString("base64")), ids, next };
    return Buffer.from(JSON.stringify(kept));
  },
  decode: (bytes) => {
    // Written by encode() above.
    const { outcomes, ids, next } = JSON.parse(Buffer.from(bytes).toString()) as KeptPart;
    const read = outcomes.map((it) => fromBinary(NodeOutcomeSchema, Buffer.from(it, "base64")));
    return { outcomes: read, ids, next };
  },
};

interface KeptPart {
  readonly outcomes: readonly string[];
  readonly ids: readonly string[] | null;
  readonly next: string | null;
}
