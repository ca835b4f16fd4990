import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type NodeOutcome, NodeOutcomeSchema, type NodeSelector } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { NewEvent } from "@rollcall/domain";
import type { DecidedRefusal } from "@rollcall/errors";
import {
  AUDIT_OK,
  type Change,
  countThatFit,
  getNodes,
  lockBans,
  lockNodes,
  lockWithSessions,
  type NewAuditEntry,
  type NodeRecord,
  resolveRefs,
  type Tx,
} from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import { answerOnce } from "./answer-once.ts";
import type { NodesAnswer } from "./change-nodes.ts";
import type { AdminDeps } from "./deps.ts";
import {
  type NodeSelection,
  openPageToken,
  parseSelection,
  type SelectedIds,
  sealPageToken,
  selectIds,
  thoseThatMatch,
} from "./node-selection.ts";
import { auditOf, type NodeCommand, requestKeyOf } from "./node-verb.ts";
import { saveChange } from "./save-change.ts";

/** Nodes of one transaction: their rows are locked together, and registrations of them wait. */
const NODES_A_TRANSACTION = 100;
/** Nodes of one call: as many as can be done well within its deadline. */
const NODES_A_CALL = 500;
/**
 * From so many bytes of outcomes on a call does no further transaction, and a transaction has nodes of no more: labels
 * that it adds to a hundred nodes still fit into the message that tells them all.
 */
const OUTCOME_BYTES = 524_288;

/** What became of the nodes of one transaction. */
interface Part {
  readonly outcomes: readonly NodeOutcome[];
  /** What the selection's names mean, found once for the whole call; null when it has none. */
  readonly ids: readonly string[] | null;
  /** After which node to go on; null at the end. */
  readonly next: string | null;
}

/**
 * Carry out an operator's decision on each node that a selector chooses, in order of id, some in a transaction: what
 * changeNode() says of one holds for each. A refusal is the outcome of its node alone. With a request id each
 * transaction is remembered by itself, so that a call that broke off half way can be repeated. Throws INVALID_REQUEST,
 * INVALID_SELECTOR, INVALID_PAGE_TOKEN.
 */
export async function changeSelection(
  { store }: AdminDeps,
  command: NodeCommand,
  selector: NodeSelector,
): Promise<NodesAnswer> {
  const selection = parseSelection(selector);
  const outcomes: NodeOutcome[] = [];
  let from: Pick<Part, "ids" | "next"> = {
    ids: null,
    next: openPageToken(selector, command.verb.request.pageToken),
  };
  let bytes = 0;
  for (let done = 0; done < NODES_A_CALL; done += NODES_A_TRANSACTION) {
    const { ids, next } = from;
    if (next === null || bytes >= OUTCOME_BYTES) break;
    const { result } = await store.change((tx) => changePart(tx, command, { selection, ids, after: next }));
    outcomes.push(...result.outcomes);
    for (const it of result.outcomes) bytes += toBinary(NodeOutcomeSchema, it).length;
    from = result;
  }
  return {
    outcomes,
    nextPageToken: from.next === null ? "" : sealPageToken(selector, from.next),
  };
}

interface PartRequest {
  readonly selection: NodeSelection;
  readonly ids: readonly string[] | null;
  readonly after: string;
}

async function changePart(tx: Tx, command: NodeCommand, request: PartRequest): Promise<Change<Part>> {
  if (command.verb.placesBans === true) await lockBans(tx);
  const key = requestKeyOf(command, `#${request.after}`);
  return answerOnce(tx, key, PART_CODEC, async () => {
    const { selection, after } = request;
    const named =
      request.ids === null && selection.names.length > 0
        ? await resolveRefs(tx, selection.names)
        : { ids: request.ids, refusals: [] };
    const part = { ids: named.ids, after, limit: NODES_A_TRANSACTION };
    const { ids, next } = await fitting(tx, await selectIds(tx, selection, part));
    const lock = command.verb.readsHealth === true ? lockWithSessions : lockNodes;
    const locked = await lock(tx, ids);
    // What was chosen by may have changed while the locks were waited for.
    const chosen = await thoseThatMatch(
      tx,
      selection.filter,
      locked.map(({ id }) => id),
    );
    const change = await changeLockedNodes(
      tx,
      command,
      locked.filter(({ id }) => chosen.has(id)),
    );
    const unknown = named.refusals.map(({ ref, refusal }) => refusedOutcome(ref, refusal));
    return {
      ...change,
      result: { outcomes: [...unknown, ...change.result], ids: named.ids, next },
    };
  });
}

/** As many of the selected nodes as can be told in one message. */
async function fitting(tx: Tx, { ids, next }: SelectedIds): Promise<SelectedIds> {
  const count = await countThatFit(tx, ids, OUTCOME_BYTES);
  const last = ids[count - 1];
  return count === ids.length || last === undefined ? { ids, next } : { ids: ids.slice(0, count), next: last };
}

/** Do it to nodes whose rows are locked: an outcome and an audit row for each, an event for each that changed. */
async function changeLockedNodes(
  tx: Tx,
  command: NodeCommand,
  nodes: readonly NodeRecord[],
): Promise<Change<readonly NodeOutcome[]>> {
  const { verb, by } = command;
  const refusals = new Map<string, DecidedRefusal>();
  const events: NewEvent[] = [];
  const audit: NewAuditEntry[] = [];
  const changed: string[] = [];
  for (const node of nodes) {
    const decision = verb.decide(node, by);
    if (!decision.ok) refusals.set(node.id, decision.refusal);
    if (verb.request.validateOnly) continue;
    audit.push(auditOf(command, node.id, decision.ok ? AUDIT_OK : decision.refusal.reason));
    if (!decision.ok || decision.effect === null) continue;
    const further = await saveChange(tx, node, decision.effect.change, by);
    events.push(decision.effect.event, ...further);
    changed.push(node.id);
  }
  // One that was removed is told as it last was.
  const after = new Map((await getNodes(tx, changed)).map((node) => [node.id, node]));
  const outcomes = nodes.map((node) => {
    const refusal = refusals.get(node.id);
    return refusal === undefined ? doneOutcome(after.get(node.id) ?? node) : refusedOutcome(node.id, refusal);
  });
  return { result: outcomes, events, audit };
}

function doneOutcome(node: NodeRecord): NodeOutcome {
  const value = nodeToProto(node);
  return create(NodeOutcomeSchema, { nodeId: node.id, result: { case: "node", value } });
}

function refusedOutcome(nodeId: string, refusal: DecidedRefusal): NodeOutcome {
  const { reason, message, metadata } = refusal;
  const value = { reason: ErrorReason[reason], message, metadata: { ...metadata } };
  return create(NodeOutcomeSchema, { nodeId, result: { case: "refusal", value } });
}

const PART_CODEC = {
  encode: ({ outcomes, ids, next }: Part): Uint8Array => {
    const bytes = outcomes.map((it) => Buffer.from(toBinary(NodeOutcomeSchema, it)));
    const kept: KeptPart = { outcomes: bytes.map((it) => it.toString("base64")), ids, next };
    return Buffer.from(JSON.stringify(kept));
  },
  decode: (bytes: Uint8Array): Part => {
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
