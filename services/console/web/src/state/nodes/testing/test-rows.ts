import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ConnectionState,
  HealthState,
  LabelTier,
  MembershipState,
  NodeSchema,
  NodeType,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { type NodeRow, toRow } from "../node-row.ts";

type NodeInit = Extract<MessageInitShape<typeof NodeSchema>, { readonly $typeName?: never }>;

/** A node for tests: an approved, healthy machine by default. */
export function testNode(id: string, labels: Readonly<Record<string, string>> = {}, more: NodeInit = {}) {
  const well: NodeInit = {
    id,
    type: NodeType.COMPUTE,
    membership: { state: MembershipState.APPROVED },
    connection: { state: ConnectionState.CONNECTED },
    health: { state: HealthState.HEALTHY },
    scheduling: { state: SchedulingState.ELIGIBLE },
    mayTakeWork: true,
    labels: Object.entries(labels).map(([key, value]) => ({ key, value, tier: LabelTier.OPERATOR })),
    info: { hostname: `${id}.example`, cpu: { threads: 8 }, memoryBytes: 1024n ** 3n },
  };
  return create(NodeSchema, { ...well, ...more });
}

/** The row of a node that testNode() creates. */
export function testRow(...of: Parameters<typeof testNode>): NodeRow {
  return toRow(testNode(...of));
}
