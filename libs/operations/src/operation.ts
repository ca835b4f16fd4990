import { type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { CommandSource, OwnerQuota } from "@rollcall/domain";
import { bearerOf } from "@rollcall/identity";
import type { Clock } from "@rollcall/process";
import { type AuditedCall, auditedCall, callerOf, noteRevision } from "@rollcall/rpc";
import {
  AUDIT_OK,
  type CallStore,
  type Change,
  currentRevision,
  firstAnswer,
  lockBans,
  type NewAuditEntry,
  type RequestKey,
  saveAnswer,
  type Tx,
} from "@rollcall/store";

/** A call that changes something: who makes it, and what its audit rows say. */
export interface Operation {
  readonly by: CommandSource;
  readonly call: AuditedCall;
  /** Names the request; null when its answer is not remembered. */
  readonly key: RequestKey | null;
  /** What the jobs of an owner can use by calls of this caller; null for no limit. */
  readonly quota: OwnerQuota | null;
  /** Add a revision to the response. */
  noteRevision(revision: bigint): void;
}

/** What of a request makes it an operation. */
export interface OperationFields {
  /** Why, in the operator's words; may be empty. */
  readonly reason: string;
  /** Empty for a request that does not name itself. */
  readonly requestId: string;
  /** Whether there is nothing to do, so that no answer is remembered. Default false. */
  readonly validateOnly?: boolean;
}

/** Read an operation out of a call. */
export function readOperation(
  { clock, quota = null }: { readonly clock: Clock; readonly quota?: OwnerQuota | null },
  method: DescMethod,
  { reason, requestId, validateOnly = false }: OperationFields,
  context: Pick<HandlerContext, "values">,
): Operation {
  const call = auditedCall(context, method);
  const { actor } = call;
  const isNamed = requestId !== "" && !validateOnly;
  const key = isNamed ? { requestId, method: `/${method.parent.typeName}/${method.name}`, caller: actor } : null;
  const by = { actor, message: reason, atMs: clock.wallMs() };
  const caller = callerOf(context);
  const isSubmitter = "role" in caller && caller.role === "submitter";
  const noted = (revision: bigint) => noteRevision(context, revision);
  return { by, call, key, quota: isSubmitter ? quota : null, noteRevision: noted };
}

/** The access token of a call that takes a role, whole. */
export function bearerIn({ requestHeader }: Pick<HandlerContext, "requestHeader">): string {
  const bearer = bearerOf(requestHeader.get("authorization"));
  if (bearer === null) throw new Error("a caller with a role came without a token");
  return bearer;
}

/** How an answer is remembered. */
export interface AnswerCodec<T> {
  encode(answer: T): Uint8Array;
  /** Read an answer back; what it lacks may be read from the record. */
  decode(bytes: Uint8Array, tx: Tx): T | Promise<T>;
}

/** Remember a message as it is. */
export function messageCodec<D extends DescMessage>(schema: D): AnswerCodec<MessageShape<D>> {
  return { encode: (answer) => toBinary(schema, answer), decode: (bytes) => fromBinary(schema, bytes) };
}

/** How one transaction of an operation is run. */
export interface CommitOptions<T> {
  readonly codec: AnswerCodec<T>;
  /** Which part of the request this is, when each is remembered by itself; the whole when it is left out. */
  readonly part?: string;
  /** Whether bans are placed, so that registrations are held off before any row is locked. Default false. */
  readonly placesBans?: boolean;
}

/**
 * Run an operation in one transaction: state, events, audit rows and the answer to the request id together. A request
 * id that was used before gets its first answer again, and nothing is done. A throw rolls the request id back as well.
 * The revision of what its caller sees is sent with the answer.
 */
export async function commit<T>(
  { store }: { readonly store: CallStore },
  { key, noteRevision }: Pick<Operation, "key" | "noteRevision">,
  { codec, part = "", placesBans = false }: CommitOptions<T>,
  act: (tx: Tx) => Promise<Change<T>>,
): Promise<T> {
  const { result, revision } = await store.change(async (tx) => {
    if (placesBans) await lockBans(tx);
    if (key === null) return withEnd(tx, await act(tx), noteRevision);
    const partKey = { ...key, method: `${key.method}${part}` };
    const first = await firstAnswer(tx, partKey);
    if (first !== null) return withEnd(tx, { result: await codec.decode(first, tx), events: [] }, noteRevision);
    const change = await act(tx);
    await saveAnswer(tx, partKey, codec.encode(change.result));
    return withEnd(tx, change, noteRevision);
  });
  noteRevision(revision);
  return result;
}

/** A repeated change was made at the present end of the log or earlier. */
async function withEnd<T>(tx: Tx, change: Change<T>, note: Operation["noteRevision"]): Promise<Change<T>> {
  if (change.events.length === 0) note(await currentRevision(tx));
  return change;
}

/** The audit row of what an operation did to a target, or why it did nothing. */
export function auditOf({ call, by }: Operation, target: string, outcome = AUDIT_OK): NewAuditEntry {
  return { ...call, target, reason: by.message, outcome };
}
