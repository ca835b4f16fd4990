import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type DeletedNode,
  DeletedNodeSchema,
  ListDeletedNodesResponseSchema,
  type RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import type { Connection, Health, Label, Membership, Scheduling } from "@rollcall/domain";
import { listTombstones, type Tombstone } from "@rollcall/store";
import {
  connectionToProto,
  healthToProto,
  labelsToProto,
  membershipToProto,
  nodeTypeToProto,
  readPage,
  readRows,
  schedulingToProto,
} from "@rollcall/wire";
import { pageSize } from "../convert.ts";
import type { RegistryServices } from "../registry-services.ts";

/** Return a page of tombstones of removed nodes. */
export function listDeletedNodes({
  store,
  pageTokens,
}: RegistryServices): MethodImpl<typeof RegistryService.method.listDeletedNodes> {
  return async (request, context) => {
    const { nodeId } = request;
    const limit = pageSize(request.pageSize);
    const name = JSON.stringify(["deleted-nodes", nodeId]);
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const cursor = pageTokens.open(name, request.pageToken) as string | null;
    const rows = readRows<Tombstone, bigint | null>({
      limit,
      from: cursor === null ? null : BigInt(cursor),
      read: (before, count) =>
        listTombstones(store.db, {
          ...(nodeId === "" ? {} : { nodeId }),
          limit: count,
          before,
        }),
      cursorOf: ({ id }) => id,
    });
    const page = await readPage(context, {
      ...{ rows, limit, item: DeletedNodeSchema, toMessage: toDeletedNode },
    });
    return page.answer(ListDeletedNodesResponseSchema, "deletedNodes", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(name, String(page.next.id)),
    });
  };
}

/**
 * The state of a node in its tombstone. A tombstone from an older release may lack some of it.
 */
interface LastState {
  readonly membership?: Membership;
  readonly connection?: Connection;
  readonly health?: Health;
  readonly scheduling?: Scheduling;
  readonly labels?: readonly Label[];
  readonly keyFingerprint?: string | null;
}

function toDeletedNode(tombstone: Tombstone): DeletedNode {
  // The cast is safe, because the store wrote this state when it deleted the node.
  const last = tombstone.lastState as LastState;
  return create(DeletedNodeSchema, {
    nodeId: tombstone.nodeId,
    type: nodeTypeToProto(tombstone.type),
    deleteTime: timestampFromMs(tombstone.removedAtMs),
    actor: tombstone.actor,
    reason: tombstone.reason,
    message: tombstone.message,
    ...(last.membership === undefined ? {} : { membership: membershipToProto(last.membership) }),
    ...(last.connection === undefined ? {} : { connection: connectionToProto(last.connection) }),
    ...(last.health === undefined ? {} : { health: healthToProto(last.health) }),
    ...(last.scheduling === undefined ? {} : { scheduling: schedulingToProto(last.scheduling) }),
    labels: labelsToProto(last.labels ?? []),
    keyFingerprint: last.keyFingerprint ?? "",
  });
}
