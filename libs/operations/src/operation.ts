import {
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { CommandSource, OwnerQuota } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import { type AuditedCall, auditedCall, type CallContext, callerOf, noteRevision, requestDigest } from "@rollcall/rpc";
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

/** A call that changes something: its caller, and the contents of its audit rows. */
export interface Operation {
  readonly by: CommandSource;
  readonly call: AuditedCall;
  /** Identifies the request; null when the response is not stored. */
  readonly key: RequestKey | null;
  /** The quota for an owner's jobs in calls by this caller; null for no limit. */
  readonly quota: OwnerQuota | null;
  /** Whether to change nothing and only return the response. */
  readonly validateOnly: boolean;
  /** Add a revision to the response. */
  noteRevision(revision: bigint): void;
}

/** A request whose fields describe an operation. */
export interface OperationRequest extends Message {
  /** The operator's reason. Absent if the request has none. */
  readonly reason?: string;
  /** Empty when the request has no id, absent if the method takes none. */
  readonly requestId?: string;
  /** Whether to only validate, so that no response is stored. Default false. */
  readonly validateOnly?: boolean;
}

/** Build an operation from a call. Pass `message` if the request has the reason in another field than `reason`. */
export function readOperation(
  { clock, quota = null }: { readonly clock: Clock; readonly quota?: OwnerQuota | null },
  method: DescMethod,
  request: OperationRequest,
  context: CallContext,
  message = request.reason ?? "",
): Operation {
  const call = auditedCall(context, method);
  const { actor } = call;
  const by = { actor, message, atMs: clock.wallMs() };
  const caller = callerOf(context);
  const isSubmitter = "role" in caller && caller.role === "submitter";
  const noted = (revision: bigint) => noteRevision(context, revision);
  const { validateOnly = false } = request;
  const key = validateOnly ? null : keyOf(method, request, actor);
  return { by, call, key, quota: isSubmitter ? quota : null, validateOnly, noteRevision: noted };
}

function keyOf(method: DescMethod, request: OperationRequest, caller: string): RequestKey | null {
  const { requestId = "" } = request;
  if (requestId === "") return null;
  const digest = requestDigest(method.input, request);
  return { requestId, method: `/${method.parent.typeName}/${method.name}`, caller, digest };
}

/** How a response is stored. */
export interface AnswerCodec<T> {
  encode(answer: T): Uint8Array;
  /** Decode a response. Parts that were not encoded can be read from the store. */
  decode(bytes: Uint8Array, tx: Tx): T | Promise<T>;
}

/** A codec that stores a message unchanged. */
export function messageCodec<D extends DescMessage>(schema: D): AnswerCodec<MessageShape<D>> {
  return { encode: (answer) => toBinary(schema, answer), decode: (bytes) => fromBinary(schema, bytes) };
}

/** How to run one transaction of an operation. */
export interface CommitOptions<T> {
  readonly codec: AnswerCodec<T>;
  /** Identifies a part of the request whose response is stored separately; absent for the whole request. */
  readonly part?: string;
  /** Whether the operation creates bans. If so, registrations are blocked before any row is locked. Default false. */
  readonly placesBans?: boolean;
}

/**
 * Run an operation in one transaction: state, events, audit rows and the response for the request id. A repeated
 * request id returns the first response again and does nothing else; with another request it is refused with
 * REQUEST_ID_REUSED. An exception also rolls back the request id. The revision for the caller is sent with the
 * response. A request that only validates is rolled back, so it has no effect.
 */
export async function commit<T>(
  { store }: { readonly store: CallStore },
  { key, noteRevision, validateOnly }: Pick<Operation, "key" | "noteRevision" | "validateOnly">,
  { codec, part = "", placesBans = false }: CommitOptions<T>,
  act: (tx: Tx) => Promise<Change<T>>,
): Promise<T> {
  if (validateOnly) {
    return rehearse({ store }, async (tx) => {
      if (placesBans) await lockBans(tx);
      return (await withEnd(tx, { ...(await act(tx)), events: [] }, noteRevision)).result;
    });
  }
  const { result, revision } = await store.change(async (tx) => {
    if (placesBans) await lockBans(tx);
    if (key === null) return withEnd(tx, await act(tx), noteRevision);
    const first = await firstAnswer(tx, key, part);
    if (first !== null) return withEnd(tx, { result: await codec.decode(first, tx), events: [] }, noteRevision);
    const change = await act(tx);
    await saveAnswer(tx, key, codec.encode(change.result), part);
    return withEnd(tx, change, noteRevision);
  });
  noteRevision(revision);
  return result;
}

/** Act in a transaction that is rolled back. Returns the result, or throws the refusal. */
export async function rehearse<T>({ store }: { readonly store: CallStore }, act: (tx: Tx) => Promise<T>): Promise<T> {
  const end = new Error("rehearsed");
  const results: T[] = [];
  const rehearsal = store.transaction(async (tx) => {
    results.push(await act(tx));
    throw end;
  });
  await rehearsal.catch((error: unknown) => {
    if (error !== end) throw error;
  });
  return results.at(-1) as T;
}

/** Without events, note the current end of the log: a repeated change happened there or earlier. */
async function withEnd<T>(tx: Tx, change: Change<T>, note: Operation["noteRevision"]): Promise<Change<T>> {
  if (change.events.length === 0) note(await currentRevision(tx));
  return change;
}

/** The audit row for the effect of an operation on a target, or for the reason why there was none. */
export function auditOf({ call, by }: Operation, target: string, outcome = AUDIT_OK): NewAuditEntry {
  return { ...call, target, reason: by.message, outcome };
}
