import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { actorOf } from "@rollcall/identity";
import { callerOf, peerKey, requestIdOf } from "./call-context.ts";
import { methodName } from "./policy.ts";

/** What the audit log keeps of a call, whatever it was about. */
export interface AuditedCall {
  /** Who calls; a method of nodes puts "node:<id>" in its place. */
  readonly actor: string;
  /** As "rollcall.admin.v1.AdminService/ApproveNode". */
  readonly method: string;
  /** Where the call comes from, as HOST:PORT; with a blank and the session's id when a session of the console calls. */
  readonly address: string;
  /** The call's x-request-id, which its line in the log has too. */
  readonly requestId: string;
}

/** Describe a call for the audit log. */
export function auditedCall(context: Pick<HandlerContext, "values">, method: DescMethod): AuditedCall {
  const caller = callerOf(context);
  const session = caller.kind === "anonymous" ? undefined : caller.session;
  const peer = context.values.get(peerKey);
  return {
    actor: actorOf(caller),
    method: methodName(method),
    // A session acts in the name of another: without its id, what it did could not be told from what its owner did.
    address: session === undefined ? peer : `${peer} ${session}`,
    requestId: requestIdOf(context),
  };
}

/** Fields in which requests name what they are about, the most telling first. */
const TARGET_FIELDS = ["node", "nodeId", "id", "fingerprint", "group", "name"];

/** What an id, a name or a fingerprint looks like. Other texts are not worth keeping of a request that was refused. */
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9._:+/=-]{0,127}$/;
/** The text of a token of ours, which may be given in place of its id: "rc_<id>_<secret>". */
const TOKEN = /^([a-z]{1,8}_[0-9A-Za-z]{4,32})_[\w-]{16,}$/;
/** A JSON web token. */
const WEB_TOKEN = /^ey[\w-]+\.[\w-]+\.[\w-]*$/;

/** What a request names as its subject, for the audit log; empty when nothing. A secret in its place is left out. */
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
