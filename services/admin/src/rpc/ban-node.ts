import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  AdminService,
  type BanNodeRequest,
  type BanNodeResponse,
  BanNodeResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { banEvent, isKeyFingerprint, isNodeId } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import {
  AUDIT_OK,
  type Change,
  findBans,
  insertBan,
  lockBans,
  lockNode,
  type NodeRecord,
  ownersOfKeys,
  resolveRefs,
  type Tx,
} from "@rollcall/store";
import { type AnswerCodec, answerOnce } from "../answer-once.ts";
import { changeLockedNode } from "../change-node.ts";
import { changeSelection } from "../change-selection.ts";
import { banToProto } from "../convert.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, decideMembershipOf, refused } from "../node-decision.ts";
import { auditOf, type NodeCommand, readCommand, requestKeyOf } from "../node-verb.ts";
import { namesOf } from "../save-change.ts";

/** Keep a node out until the ban is lifted: by its id, its key, or both. */
export function banNode(deps: AdminDeps): MethodImpl<typeof AdminService.method.banNode> {
  const method = AdminService.method.banNode;
  return async (request, context) => {
    const verb = { method, request, context, decide, placesBans: true };
    const command = readCommand(deps, verb);
    const { selector } = request;
    if (selector !== undefined) {
      return create(BanNodeResponseSchema, await changeSelection(deps, command, selector));
    }
    const { result } = await deps.store.change(async (tx) => {
      await lockBans(tx);
      const key = requestKeyOf(command);
      return answerOnce(tx, key, CODEC, () => ban(tx, command, request));
    });
    return result;
  };
}

const decide: DecideNode = (node, by) => decideMembershipOf(node, { kind: "ban" }, by);

const CODEC: AnswerCodec<BanNodeResponse> = {
  encode: (answer) => toBinary(BanNodeResponseSchema, answer),
  decode: (bytes) => fromBinary(BanNodeResponseSchema, bytes),
};

async function ban(tx: Tx, command: NodeCommand, request: BanNodeRequest): Promise<Change<BanNodeResponse>> {
  const node = await lockTarget(tx, request);
  if (node === null) return banInAdvance(tx, command, request);
  const change = await changeLockedNode(tx, command, node);
  const placed = request.validateOnly ? undefined : (await findBans(tx, await namesOf(tx, node))).at(-1);
  const result = create(BanNodeResponseSchema, {
    node: change.result,
    ...(placed === undefined ? {} : { ban: banToProto(placed) }),
  });
  return { ...change, result };
}

/** The node that is meant, its row locked; null when there is none. Throws AMBIGUOUS_NODE. */
async function lockTarget(tx: Tx, request: BanNodeRequest): Promise<NodeRecord | null> {
  const { node, nodeId, fingerprint } = request;
  if (fingerprint !== "") {
    const owner = (await ownersOfKeys(tx, [fingerprint])).get(fingerprint);
    return owner === undefined ? null : lockNode(tx, owner);
  }
  if (nodeId !== "") return lockNode(tx, nodeId);
  const { ids, refusals } = await resolveRefs(tx, [node]);
  const ambiguous = refusals.find(({ refusal }) => refusal.reason !== "NODE_NOT_FOUND");
  if (ambiguous !== undefined) throw refusalError(ambiguous.refusal, node);
  const [id] = ids;
  return id === undefined ? null : lockNode(tx, id);
}

/** Ban an id or a key that no node has. Registrations wait, so none can take it meanwhile. */
async function banInAdvance(
  tx: Tx,
  command: NodeCommand,
  { node, nodeId, fingerprint, validateOnly, etag }: BanNodeRequest,
): Promise<Change<BanNodeResponse>> {
  const id = fingerprint === "" ? nodeId || node : null;
  const subject = id ?? fingerprint;
  if (id !== null && !isNodeId(id)) throw invalidNodeId(id);
  if (id === null && !isKeyFingerprint(fingerprint)) throw invalidFingerprint();
  if (etag !== "") {
    const message = `node ${subject} not found, so it has no etag; leave it out to ban the id in advance`;
    throw refuse("NODE_NOT_FOUND", message, { metadata: { node: subject } });
  }
  const names = id === null ? { nodeId: null, fingerprint } : { nodeId: id, fingerprint: null };
  const earlier = await findBans(tx, {
    nodeIds: id === null ? [] : [id],
    fingerprints: id === null ? [fingerprint] : [],
  });
  if (earlier.length > 0) {
    const decision = refused("NODE_ALREADY_BANNED", subject, "already banned");
    if (!decision.ok) throw refusalError(decision.refusal, subject);
  }
  if (validateOnly) return { result: create(BanNodeResponseSchema, {}), events: [] };
  const { actor, message } = command.by;
  const placed = await insertBan(tx, { ...names, actor, reason: message });
  return {
    result: create(BanNodeResponseSchema, { ban: banToProto(placed) }),
    events: [banEvent({ type: "node.banned", subject, actor, message })],
    audit: [auditOf(command, subject, AUDIT_OK)],
  };
}

function invalidNodeId(id: string): Error {
  const description =
    "there is no such node, and a node id is 1-63 characters of [A-Za-z0-9._-] and starts with a letter or digit";
  return refuse("INVALID_NODE_ID", `${JSON.stringify(id)} cannot be banned: ${description}`, {
    metadata: { node: id },
    violations: [{ field: "node", description }],
  });
}

function invalidFingerprint(): Error {
  const description =
    "no node has such a key, and a fingerprint is SHA256: and 43 letters, digits, - and _, as `rollcall node describe` shows it";
  return refuse("INVALID_REQUEST", `invalid request: fingerprint: ${description}`, {
    violations: [{ field: "fingerprint", description }],
  });
}
