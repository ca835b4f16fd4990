import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  AdminService,
  type BanNodeRequest,
  type BanNodeResponse,
  BanNodeResponseSchema,
  BanSchema,
  ListBansResponseSchema,
  type Ban as ProtoBan,
  type UnbanNodeRequest,
  type UnbanNodeResponse,
  UnbanNodeResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import {
  type Ban,
  banInAdvance,
  bannedNamesOf,
  etagRefusal,
  isBareBan,
  isKeyFingerprint,
  isNodeId,
  liftBareBans,
  NODE_ID_RULE,
  type Node,
} from "@rollcall/domain";
import { type DecidedRefusal, refusalError, refuse } from "@rollcall/errors";
import { auditOf, commit, messageCodec } from "@rollcall/operations";
import { createPageTokens } from "@rollcall/rpc";
import {
  type Change,
  deleteBans,
  findBans,
  insertBan,
  listBans as listStored,
  lockNamedNode,
  lockNode,
  ownersOfKeys,
  type Tx,
  withSuggestion,
} from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";
import { BANNING, nodeMethods, readNodeOperation, UNBANNING } from "../nodes/node-methods.ts";
import { nodeOf } from "../nodes/node-outcomes.ts";
import { type NodeOperation, operateOnLocked } from "../nodes/operate.ts";

/**
 * The methods that set and lift bans. With a selector they decide about nodes like the other verbs. A ban can also
 * name an id or a key that no node has.
 */
export function banMethods(services: AdminServices): {
  readonly banNode: MethodImpl<typeof AdminService.method.banNode>;
  readonly unbanNode: MethodImpl<typeof AdminService.method.unbanNode>;
  readonly listBans: MethodImpl<typeof AdminService.method.listBans>;
} {
  const { banNode: method, unbanNode: liftMethod } = AdminService.method;
  const ofNodes = nodeMethods(services);
  return {
    banNode: async (request, context) => {
      if (request.selector !== undefined) return ofNodes.banNode(request, context);
      const operation = readNodeOperation(services, { method, request, context, decision: BANNING });
      const options = { codec: messageCodec(BanNodeResponseSchema), placesBans: true };
      return commit(services, operation, options, (tx) => ban(tx, operation, request));
    },
    unbanNode: async (request, context) => {
      if (request.selector !== undefined) return ofNodes.unbanNode(request, context);
      const operation = readNodeOperation(services, { method: liftMethod, request, context, decision: UNBANNING });
      const options = { codec: messageCodec(UnbanNodeResponseSchema), placesBans: true };
      return commit(services, operation, options, (tx) => unban(tx, operation, request));
    },
    listBans: listBans(services),
  };
}

/** The public message of a ban. */
function banToProto(ban: Ban): ProtoBan {
  return create(BanSchema, {
    nodeId: ban.nodeId ?? "",
    fingerprint: ban.fingerprint ?? "",
    reason: ban.reason,
    actor: ban.actor,
    createTime: timestampFromMs(ban.atMs),
  });
}

async function ban(tx: Tx, operation: NodeOperation, request: BanNodeRequest): Promise<Change<BanNodeResponse>> {
  const node = await lockBanTarget(tx, request);
  if (node === null) return banBare(tx, operation, request);
  const change = await operateOnLocked(tx, operation, [node], true);
  const placed = request.validateOnly ? undefined : (await findBans(tx, bannedNamesOf(node))).at(-1);
  return { ...change, result: create(BanNodeResponseSchema, { ...nodeOf(change.result), ...banOf(placed) }) };
}

/** The node to ban, with its row locked; null for an id or a key that no node has. Throws NODE_NOT_FOUND. */
async function lockBanTarget(tx: Tx, request: BanNodeRequest): Promise<Node | null> {
  const { node, nodeId, fingerprint } = request;
  if (fingerprint !== "") return lockOwner(tx, fingerprint);
  return nodeId === "" ? lockNamedNode(tx, node) : lockNode(tx, nodeId);
}

async function lockOwner(tx: Tx, fingerprint: string): Promise<Node | null> {
  const owner = (await ownersOfKeys(tx, [fingerprint])).get(fingerprint);
  return owner === undefined ? null : lockNode(tx, owner);
}

/** Ban an id or a key that no node has. Blocks registrations, so that no node can take the id in the meantime. */
async function banBare(tx: Tx, operation: NodeOperation, request: BanNodeRequest): Promise<Change<BanNodeResponse>> {
  const { fingerprint, validateOnly } = request;
  const id = fingerprint === "" ? request.nodeId : null;
  const subject = id ?? fingerprint;
  checkBareName(id, request);
  const names = id === null ? { nodeIds: [], fingerprints: [fingerprint] } : { nodeIds: [id], fingerprints: [] };
  const name = id === null ? { nodeId: null, fingerprint } : { nodeId: id, fingerprint: null };
  const decided = banInAdvance(name, await findBans(tx, names), operation.by);
  if (!decided.ok) throw refusalError(decided.refusal, subject);
  if (validateOnly) return { result: create(BanNodeResponseSchema, {}), events: [] };
  let placed: Ban | undefined;
  for (const newBan of decided.effects) placed = await insertBan(tx, newBan);
  return {
    result: create(BanNodeResponseSchema, banOf(placed)),
    events: decided.events,
    audit: [auditOf(operation, subject)],
  };
}

/**
 * Check an id or a fingerprint that no node has. Throws INVALID_NODE_ID or INVALID_REQUEST if it is not valid, and
 * NODE_NOT_FOUND if the request has an etag, because only an existing node has one.
 */
function checkBareName(id: string | null, { fingerprint, etag }: BanNodeRequest): void {
  if (id !== null && !isNodeId(id)) {
    const description = `no node has this id, and it is not a valid node id: ${NODE_ID_RULE}`;
    throw refuse("INVALID_NODE_ID", `${JSON.stringify(id)} cannot be banned: ${description}`, {
      metadata: { node: id },
      violations: [{ field: "node_id", description }],
    });
  }
  if (id === null && !isKeyFingerprint(fingerprint)) {
    const description =
      "no node has this key, and it is not a valid fingerprint: SHA256: followed by 43 letters, digits, - or _, as " +
      "in " +
      "Node.key_fingerprint";
    throw refuse("INVALID_REQUEST", `invalid request: fingerprint: ${description}`, {
      violations: [{ field: "fingerprint", description }],
    });
  }
  if (etag !== "") throw noNodeForEtag(id ?? fingerprint, "to ban the id in advance, omit the etag");
}

/** The error for an etag of a node that does not exist. */
function noNodeForEtag(subject: string, advice: string): Error {
  return refuse("NODE_NOT_FOUND", `node ${subject} not found; ${advice}`, { metadata: { node: subject } });
}

async function unban(tx: Tx, operation: NodeOperation, request: UnbanNodeRequest): Promise<Change<UnbanNodeResponse>> {
  const { node, bans } = await lockUnbanTarget(tx, request);
  if (node === null || isBareBan(node, bans)) {
    checkEtagOfBare(node, request);
    return liftBare(tx, operation, request, bans);
  }
  const change = await operateOnLocked(tx, operation, [node], true);
  const lifted = request.validateOnly ? [] : bans;
  const answer = { ...nodeOf(change.result), bans: lifted.map(banToProto) };
  return { ...change, result: create(UnbanNodeResponseSchema, answer) };
}

/** Throws NODE_NOT_FOUND for an etag without a node, and ETAG_MISMATCH for the etag of another state of the node. */
function checkEtagOfBare(node: Node | null, { node: id, fingerprint, etag }: UnbanNodeRequest): void {
  if (etag === "") return;
  if (node === null) throw noNodeForEtag(fingerprint || id, "to lift a ban without a node, omit the etag");
  const refused = etagRefusal(node, etag);
  if (refused !== null) throw refusalError(refused.refusal, node.id);
}

/** The target of a request: a locked node, or null for an id or key that no node has; and the bans on it. */
interface UnbanTarget {
  readonly node: Node | null;
  readonly bans: readonly Ban[];
}

/** Find and lock the target. Throws NODE_NOT_FOUND when neither a node nor a ban has the id. */
async function lockUnbanTarget(tx: Tx, request: UnbanNodeRequest): Promise<UnbanTarget> {
  const { node: id, fingerprint } = request;
  if (fingerprint !== "") {
    const node = await lockOwner(tx, fingerprint);
    return { node, bans: await bansOn(tx, node, { nodeIds: [], fingerprints: [fingerprint] }) };
  }
  const onId = { nodeIds: [id], fingerprints: [] };
  const node = isNodeId(id) ? await lockNode(tx, id) : null;
  const bans = await bansOn(tx, node, onId);
  if (node === null && bans.length === 0) throw refusalError(await notBanned(tx, id), id);
  return { node, bans };
}

/**
 * The error for an id that neither a node nor a ban has. It suggests a similar banned id rather than the id of another
 * node.
 */
async function notBanned(tx: Tx, id: string): Promise<DecidedRefusal> {
  const text = `no node or ban has the id ${id}`;
  const missing = { reason: "NODE_NOT_FOUND", message: text, metadata: { node: id } } as const;
  const suggested = await withSuggestion(tx, "bannedId", id, missing);
  return suggested === missing ? withSuggestion(tx, "node", id, missing) : suggested;
}

function bansOn(tx: Tx, node: Node | null, names: Parameters<typeof findBans>[1]): Promise<readonly Ban[]> {
  return findBans(tx, node === null ? names : bannedNamesOf(node));
}

async function liftBare(
  tx: Tx,
  operation: NodeOperation,
  request: UnbanNodeRequest,
  bans: readonly Ban[],
): Promise<Change<UnbanNodeResponse>> {
  const subject = request.fingerprint || request.node;
  const decided = liftBareBans(subject, bans, operation.by);
  if (!decided.ok) throw refusalError(decided.refusal, subject);
  if (request.validateOnly) return { result: create(UnbanNodeResponseSchema, {}), events: [] };
  const lifted = await deleteBans(tx, decided.effects);
  return {
    result: create(UnbanNodeResponseSchema, { bans: lifted.map(banToProto) }),
    events: decided.events,
    audit: [auditOf(operation, subject)],
  };
}

function banOf(ban: Ban | undefined): { readonly ban?: ProtoBan } {
  return ban === undefined ? {} : { ban: banToProto(ban) };
}

const DEFAULT_PAGE_SIZE = 100;
/** Identifies the listing in page tokens. The listing has neither filter nor order. */
const LISTING = "bans";

/** Return a page of bans, newest first. */
function listBans({ store }: AdminServices): MethodImpl<typeof AdminService.method.listBans> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }, context) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const cursor = pageTokens.open(LISTING, pageToken) as string | null;
    const rows = readRows<Ban, bigint | null>({
      limit,
      from: cursor === null ? null : BigInt(cursor),
      read: (before, count) => listStored(store.db, { limit: count, before }),
      cursorOf: ({ id }) => id,
    });
    const page = await readPage(context, { rows, limit, item: BanSchema, toMessage: banToProto });
    return page.answer(ListBansResponseSchema, "bans", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(LISTING, String(page.next.id)),
    });
  };
}
