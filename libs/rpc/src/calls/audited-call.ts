import type { DescMethod, Message } from "@bufbuild/protobuf";
import { actorOf } from "@rollcall/identity";
import { type CallContext, callerOf, peerKey, requestIdOf } from "./call-context.ts";
import { methodName } from "./policy.ts";

/** The fields that the audit log keeps of every call. */
export interface AuditedCall {
  /** The caller. Methods for nodes replace the caller with "node:<id>". */
  readonly actor: string;
  /** The called method, such as "rollcall.admin.v1.AdminService/ApproveNode". */
  readonly method: string;
  /** The caller's address as HOST:PORT. A console session's id follows it after a space. */
  readonly address: string;
  /** The call's x-request-id, which is also in its log line. */
  readonly requestId: string;
}

/** Describe a call for the audit log. */
export function auditedCall(context: CallContext, method: DescMethod): AuditedCall {
  const caller = callerOf(context);
  const session = caller.kind === "anonymous" ? undefined : caller.session;
  const peer = context.values.get(peerKey);
  return {
    actor: actorOf(caller),
    method: methodName(method),
    // Add the session id. A session acts in its owner's name, so without the id its actions would look
    // like the owner's.
    address: session === undefined ? peer : `${peer} ${session}`,
    requestId: requestIdOf(context),
  };
}

/** Fields that name the object of a request, the most specific first. */
const TARGET_FIELDS = ["node", "nodeId", "id", "fingerprint", "group", "name"];

/** The format of an id, a name or a fingerprint. Other strings in a refused request are not recorded. */
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9._:+/=-]{0,127}$/;
/** The format of a Rollcall token, "rc_<id>_<secret>". A caller can send a token where an id belongs. */
const TOKEN = /^([a-z]{1,8}_[0-9A-Za-z]{4,32})_[\w-]{16,}$/;
/** The format of a JSON Web Token. */
const WEB_TOKEN = /^ey[\w-]+\.[\w-]+\.[\w-]*$/;

/** The object of a request, for the audit log; empty if there is none. Secrets are masked. */
export function auditTarget(request: Message): string {
  const fields = request as unknown as Readonly<Record<string, unknown>>;
  for (const field of TARGET_FIELDS) {
    const value = fields[field];
    if (typeof value === "string" && value !== "") return withoutSecret(value);
  }
  return "";
}

function withoutSecret(text: string): string {
  const token = TOKEN.exec(text);
  if (token !== null) return `${token[1]}_…`;
  if (WEB_TOKEN.test(text)) return "…";
  return PLAIN.test(text) ? text : "";
}
