import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ExplainNodeResponseSchema,
  type RegistryService,
  TimelineEntrySchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { EVENT_TYPES, explainEvent, obstaclesOf, summarizeNode } from "@rollcall/domain";
import { findNode, findNodeByPrefix, readLatestEvents, type StoredEvent } from "@rollcall/store";
import { eventToProto, nodeToProto, readPage, readRows } from "@rollcall/wire";
import type { RegistryServices } from "../registry-services.ts";

const DEFAULT_LIMIT = 100;

/** Repeated reports of a node do not explain its state. */
const TYPES = EVENT_TYPES.filter(
  (type) => type.startsWith("node.") && type !== "node.info.changed" && type !== "node.labels.changed",
);

/** Explain how a node came into its state. */
export function explainNode({ store }: RegistryServices): MethodImpl<typeof RegistryService.method.explainNode> {
  return async ({ node: reference, allowPrefix, limit: asked, fromTime }, context) => {
    const limit = asked === 0 ? DEFAULT_LIMIT : asked;
    const node = await (allowPrefix ? findNodeByPrefix : findNode)(store.db, reference);
    const rows = readRows<StoredEvent, bigint | null>({
      limit,
      from: null,
      read: (before, count) =>
        readLatestEvents(store.db, {
          subject: node.id,
          types: TYPES,
          limit: count,
          before,
          ...(fromTime === undefined ? {} : { fromMs: timestampMs(fromTime) }),
        }),
      cursorOf: ({ revision }) => revision,
    });
    const page = await readPage(context, {
      rows,
      limit,
      item: TimelineEntrySchema,
      toMessage: (event) => create(TimelineEntrySchema, { event: eventToProto(event), text: explainEvent(event) }),
    });
    return page.reversed().answer(ExplainNodeResponseSchema, "entries", {
      node: nodeToProto(node),
      hasEarlier: page.next !== null,
      summary: summarizeNode(node),
      obstacles: obstaclesOf(node).map((obstacle) => ({ ...obstacle })),
    });
  };
}
