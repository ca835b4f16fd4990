import { setImmediate } from "node:timers/promises";
import { create, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  NodeChangeSchema,
  type RegistryService,
  WatchNodesResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { EncodedItems, isBinaryCall, nodeToProto } from "@rollcall/wire";
import { parseNodeFilter } from "../convert.ts";
import { parseNodeWatchStart } from "../convert-events.ts";
import type { RegistryServices } from "../registry-services.ts";
import { formatResumeToken } from "../watch/resume-token.ts";
import { type NodeUpdate, watchNodes as watch } from "../watch/watch-nodes.ts";

/** After so many changes that had to be encoded the process turns to others. */
const CHANGES_A_TURN = 8;

/** Send nodes as they are, and then as they change. */
export function watchNodes({
  store,
  clock,
  watches,
}: RegistryServices): MethodImpl<typeof RegistryService.method.watchNodes> {
  // All watchers of the window share its nodes: each is encoded once, whatever their number.
  const encoded = new WeakMap<NodeUpdate, Uint8Array>();
  const encode = async (updates: readonly NodeUpdate[]) => {
    const changes = new EncodedItems(NodeChangeSchema);
    let made = 0;
    for (const update of updates) {
      let bytes = encoded.get(update);
      if (bytes === undefined) {
        bytes = toBinary(NodeChangeSchema, changeToProto(update));
        encoded.set(update, bytes);
        made += 1;
        if (made % CHANGES_A_TURN === 0) await setImmediate();
      }
      changes.addBytes(bytes);
    }
    return changes;
  };
  return async function* (request, { signal, requestHeader }) {
    const isBinary = isBinaryCall(requestHeader);
    const filter = parseNodeFilter(request);
    const start = parseNodeWatchStart(request.start, store.logId());
    const { events, nodes: hub, snapshots, limits } = watches;
    const options = { store, events, hub, snapshots, clock, limits, filter, start, signal };
    for await (const { updates, isComplete, resume, revision } of watch(options)) {
      const rest = {
        snapshotComplete: isComplete,
        resumeToken: formatResumeToken(resume),
        revision,
      };
      yield isBinary
        ? (await encode(updates)).answer(WatchNodesResponseSchema, "changes", rest)
        : create(WatchNodesResponseSchema, { ...rest, changes: updates.map(changeToProto) });
    }
  };
}

function changeToProto(update: NodeUpdate): MessageShape<typeof NodeChangeSchema> {
  return create(NodeChangeSchema, {
    change:
      "removedId" in update
        ? { case: "removedId", value: update.removedId }
        : { case: "upserted", value: nodeToProto(update) },
  });
}
