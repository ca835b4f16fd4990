import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type HealthInternalService,
  ReadHeldLogResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import {
  type HealthQueryService,
  type ReadExecutionLogRequest,
  type ReadExecutionLogResponse,
  ReadExecutionLogResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { refuse } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import { callerOf } from "@rollcall/rpc";
import { executionNotFound, nodeOfExecution, ownersOf } from "@rollcall/store";
import type { HealthServices } from "../health-services.ts";

const RETRY_AFTER_MS = 2_000;

/** Stream what an execution wrote, whichever replica holds its node. */
export function readExecutionLog(
  services: HealthServices,
): MethodImpl<typeof HealthQueryService.method.readExecutionLog> {
  return async function* (request, context) {
    const { store, logs } = services;
    const nodeId = await nodeOfExecution(store.db, request.executionId);
    if (nodeId === null) throw await executionNotFound(store.db, request.executionId);
    const leave = logs.admit(actorOf(callerOf(context)), nodeId);
    try {
      yield* logOf(services, nodeId, request, context.signal);
    } finally {
      leave();
    }
  };
}

async function* logOf(
  services: HealthServices,
  nodeId: string,
  request: ReadExecutionLogRequest,
  signal: AbortSignal,
): AsyncGenerator<ReadExecutionLogResponse> {
  const { store, replica, peers } = services;
  const [owner] = await ownersOf(store.db, [nodeId]);
  if (owner === undefined) throw away(nodeId);
  if (owner.replicaId === replica.instance) {
    yield* heldLog(services, nodeId, request, signal);
    return;
  }
  const peer = await peers.find(owner.replicaId);
  if (peer === null) throw away(nodeId);
  for await (const { piece } of peer.client.readHeldLog({ nodeId, request }, { signal, timeoutMs: 0 })) {
    if (piece !== undefined) yield piece;
  }
}

/** Stream it to another replica, of a node that this one holds. */
export function readHeldLog(services: HealthServices): MethodImpl<typeof HealthInternalService.method.readHeldLog> {
  return async function* ({ nodeId, request }, { signal }) {
    if (request === undefined) throw new Error("the contract requires a request");
    for await (const piece of heldLog(services, nodeId, request, signal)) {
      yield create(ReadHeldLogResponseSchema, { piece });
    }
  };
}

async function* heldLog(
  { replica, logs }: HealthServices,
  nodeId: string,
  { $typeName: _type, $unknown: _unknown, ...query }: ReadExecutionLogRequest,
  signal: AbortSignal,
): AsyncGenerator<ReadExecutionLogResponse> {
  const node = replica.nodes.find(nodeId);
  if (node === undefined) throw away(nodeId);
  for await (const piece of logs.read(node, query, signal)) {
    const { data, times, ...rest } = piece;
    yield create(ReadExecutionLogResponseSchema, { ...rest, data: new Uint8Array(data), times: [...times] });
  }
}

function away(nodeId: string) {
  const message = `the output cannot be read: no replica holds node ${nodeId} just now`;
  return refuse("LOG_UNAVAILABLE", message, { retryAfterMs: RETRY_AFTER_MS, metadata: { node: nodeId } });
}
