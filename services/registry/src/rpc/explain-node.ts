import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ExplainNodeResponseSchema,
  type RegistryService,
  TimelineEntrySchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import {
  collectPolicies,
  EVENT_TYPES,
  explainEvent,
  holdEnds,
  obstaclesOf,
  PolicyResolver,
  summarizeNode,
} from "@rollcall/domain";
import {
  configuredPolicy,
  type Db,
  type EventRow,
  findNode,
  findNodeByPrefix,
  getDrain,
  type Node,
  policySubject,
  readHealthPolicies,
  readLatestEvents,
} from "@rollcall/store";
import { eventToProto, nodeToProto, readPage, readRows } from "@rollcall/wire";
import type { RegistryServices } from "../registry-services.ts";

const DEFAULT_LIMIT = 100;

/**
 * Event types in the explanation. Repeated reports of a node are left out, because they do not explain its state.
 */
const TYPES = EVENT_TYPES.filter(
  (type) => type.startsWith("node.") && type !== "node.info.changed" && type !== "node.labels.changed",
);

/** Explain how a node got into its state. */
export function explainNode({ store }: RegistryServices): MethodImpl<typeof RegistryService.method.explainNode> {
  return async ({ node: reference, allowPrefix, limit: asked, fromTime }, context) => {
    const limit = asked === 0 ? DEFAULT_LIMIT : asked;
    const node = await (allowPrefix ? findNodeByPrefix : findNode)(store.db, reference);
    const rows = readRows<EventRow, bigint | null>({
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
      obstacles: obstaclesOf(node, await readHoldEnds(store.db, node)).map(({ sinceMs, untilMs, ...said }) => ({
        ...said,
        ...(sinceMs === null ? {} : { since: timestampFromMs(sinceMs) }),
        ...(untilMs === null ? {} : { until: timestampFromMs(untilMs) }),
      })),
    });
  };
}

/** When the holds of a node end, according to its health policy and its drain. */
async function readHoldEnds(db: Db, node: Node) {
  if (node.holds.length === 0) return undefined;
  const subject = await policySubject(db, node.id);
  const { entries } = await readHealthPolicies(db);
  const resolver = new PolicyResolver(await configuredPolicy(db), collectPolicies(entries));
  const { policy } = subject === null ? resolver.combination(null) : resolver.resolve(subject);
  const drain = await getDrain(db, node.id);
  return holdEnds({
    ...{ history: node.history, rebootedAtMs: node.rebootedAtMs, duplicate: node.duplicate, policy },
    drainDeadlineAtMs: drain?.deadlineAtMs ?? null,
    drainedAtMs: drain?.drainedAtMs ?? null,
    hasTroubles: node.missingHardware.length > 0 || node.gpuTroubles.length > 0,
  });
}
