import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  AdminService,
  type UnbanNodeRequest,
  type UnbanNodeResponse,
  UnbanNodeResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { banEvent, isBanned } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import {
  AUDIT_OK,
  type Ban,
  type Change,
  deleteBans,
  findBans,
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

/** Lift every ban on a node, an id or a key. */
export function unbanNode(deps: AdminDeps): MethodImpl<typeof AdminService.method.unbanNode> {
  const method = AdminService.method.unbanNode;
  return async (request, context) => {
    const verb = { method, request, context, decide, placesBans: true };
    const command = readCommand(deps, verb);
    const { selector } = request;
    if (selector !== undefined) {
      return create(UnbanNodeResponseSchema, await changeSelection(deps, command, selector));
    }
    const { result } = await deps.store.change(async (tx) => {
      await lockBans(tx);
      const key = requestKeyOf(command);
      return answerOnce(tx, key, CODEC, () => unban(tx, command, request));
    });
    return result;
  };
}

const decide: DecideNode = (node, by) => decideMembershipOf(node, { kind: "unban" }, by);

const CODEC: AnswerCodec<UnbanNodeResponse> = {
  encode: (answer) => toBinary(UnbanNodeResponseSchema, answer),
  decode: (bytes) => fromBinary(UnbanNodeResponseSchema, bytes),
};

/** What a request means: a node, its row locked, or null; and the bans on it, or on the id or key alone. */
interface Target {
  readonly node: NodeRecord | null;
  readonly bans: readonly Ban[];
}

async function unban(tx: Tx, command: NodeCommand, request: UnbanNodeRequest): Promise<Change<UnbanNodeResponse>> {
  const { node, bans } = await lockTarget(tx, request);
  const subject = request.fingerprint || request.node;
  // A ban without a node to show it, or on a key that its node took later, is lifted by itself.
  const isBare = bans.length > 0 && (node === null || !isBanned(node.membership));
  if (isBare) return liftBare(tx, command, subject, bans);
  if (node === null) {
    const decision = refused("NODE_NOT_BANNED", subject, "is not banned");
    throw decision.ok ? new Error("a refusal was none") : refusalError(decision.refusal, subject);
  }
  const change = await changeLockedNode(tx, command, node);
  const lifted = request.validateOnly ? [] : bans;
  const result = create(UnbanNodeResponseSchema, {
    node: change.result,
    bans: lifted.map(banToProto),
  });
  return { ...change, result };
}

/** Throws NODE_NOT_FOUND or AMBIGUOUS_NODE when neither a node nor a ban is meant. */
async function lockTarget(tx: Tx, request: UnbanNodeRequest): Promise<Target> {
  const { node: ref, fingerprint } = request;
  if (fingerprint !== "") {
    const owner = (await ownersOfKeys(tx, [fingerprint])).get(fingerprint);
    const node = owner === undefined ? null : await lockNode(tx, owner);
    const bans = await findBans(tx, { nodeIds: [], fingerprints: [fingerprint] });
    return { node, bans: node === null ? bans : await findBans(tx, await namesOf(tx, node)) };
  }
  const onId = await findBans(tx, { nodeIds: [ref], fingerprints: [] });
  if (onId.length > 0) {
    // A banned id is exact, whatever nodes' ids begin with it.
    const node = await lockNode(tx, ref);
    return { node, bans: node === null ? onId : await findBans(tx, await namesOf(tx, node)) };
  }
  const { ids, refusals } = await resolveRefs(tx, [ref]);
  const [id] = ids;
  const node = id === undefined ? null : await lockNode(tx, id);
  const [unknown] = refusals;
  if (unknown !== undefined) throw refusalError(unknown.refusal, ref);
  return { node, bans: node === null ? [] : await findBans(tx, await namesOf(tx, node)) };
}

async function liftBare(
  tx: Tx,
  command: NodeCommand,
  subject: string,
  bans: readonly Ban[],
): Promise<Change<UnbanNodeResponse>> {
  if (command.verb.request.validateOnly) {
    return { result: create(UnbanNodeResponseSchema, {}), events: [] };
  }
  const lifted = await deleteBans(
    tx,
    bans.map(({ id }) => id),
  );
  const { actor, message } = command.by;
  return {
    result: create(UnbanNodeResponseSchema, { bans: lifted.map(banToProto) }),
    events: [banEvent({ type: "node.unbanned", subject, actor, message })],
    audit: [auditOf(command, subject, AUDIT_OK)],
  };
}
