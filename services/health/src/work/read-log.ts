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
import type { Clock } from "@rollcall/process";
import { callerOf } from "@rollcall/rpc";
import { executionNotFound, nodeOfExecution, ownersOf } from "@rollcall/store";
import type { HealthServices } from "../health-services.ts";

const RETRY_AFTER_MS = 2_000;
/** Maximum time without a message, in milliseconds. A message without output then proves that the stream works. */
const BOOKMARK_MS = 10_000;

/** Stream the output of an execution, whichever replica holds its node. */
export function readExecutionLog(
  services: HealthServices,
): MethodImpl<typeof HealthQueryService.method.readExecutionLog> {
  return async function* (request, context) {
    const { store, logs, clock } = services;
    const nodeId = await nodeOfExecution(store.db, request.executionId);
    if (nodeId === null) throw await executionNotFound(store.db, request.executionId);
    const leave = logs.admit(actorOf(callerOf(context)), nodeId);
    const over = new AbortController();
    try {
      const pieces = logOf(services, nodeId, request, AbortSignal.any([context.signal, over.signal]));
      yield* withBookmarks(pieces, clock);
    } finally {
      over.abort();
      leave();
    }
  };
}

/** Yield the pieces, and a message without output whenever there is none for a while. */
async function* withBookmarks(
  pieces: AsyncGenerator<ReadExecutionLogResponse>,
  clock: Pick<Clock, "sleep">,
): AsyncGenerator<ReadExecutionLogResponse> {
  let next = pieces.next();
  try {
    for (;;) {
      const waking = new AbortController();
      const rest = clock.sleep(BOOKMARK_MS, waking.signal).then(() => null);
      const piece = await Promise.race([next, rest]).finally(() => waking.abort());
      if (piece?.done === true) return;
      yield piece === null ? create(ReadExecutionLogResponseSchema) : piece.value;
      if (piece !== null) next = pieces.next();
    }
  } finally {
    // Ignore a late rejection. A reader can leave while a piece is awaited, and the caller's signal then ends the
    // wait.
    next.catch(() => {});
    pieces.return(undefined).catch(() => {});
  }
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

/** Stream the output of an execution to another replica. This replica holds the node. */
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
  const message = `the output cannot be read: no replica currently holds node ${nodeId}`;
  return refuse("LOG_UNAVAILABLE", message, { retryAfterMs: RETRY_AFTER_MS, metadata: { node: nodeId } });
}
