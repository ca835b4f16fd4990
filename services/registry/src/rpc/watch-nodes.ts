import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  NodeChangeSchema,
  type RegistryService,
  WatchNodesResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { nodeToProto } from "@rollcall/wire";
import { parseNodeFilter } from "../convert.ts";
import { parseNodeWatchStart } from "../convert-events.ts";
import type { Deps } from "../deps.ts";
import { formatResumeToken } from "../watch/resume-token.ts";
import { type NodeUpdate, watchNodes as watch } from "../watch/watch-nodes.ts";

/** Send nodes as they are, and then as they change. */
export function watchNodes({
  store,
  clock,
  watches,
}: Deps): MethodImpl<typeof RegistryService.method.watchNodes> {
  return async function* (request, { signal }) {
    const filter = parseNodeFilter(request);
    const start = parseNodeWatchStart(request.start, store.logId());
    const { events, nodes: hub, snapshots, limits } = watches;
    const options = { store, events, hub, snapshots, clock, limits, filter, start, signal };
    for await (const { updates, isComplete, resume, revision } of watch(options)) {
      yield create(WatchNodesResponseSchema, {
        changes: updates.map(changeToProto),
        snapshotComplete: isComplete,
        resumeToken: formatResumeToken(resume),
        revision,
      });
    }
  };
}

function changeToProto(update: NodeUpdate) {
  return create(NodeChangeSchema, {
    change:
      "removedId" in update
        ? { case: "removedId", value: update.removedId }
        : { case: "upserted", value: nodeToProto(update) },
  });
}
