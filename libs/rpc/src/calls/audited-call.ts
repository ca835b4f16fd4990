import type { DescMethod } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { actorOf } from "@rollcall/identity";
import { callerOf, requestIdOf } from "./call-context.ts";
import { peerKey } from "./call-values.ts";
import { methodName } from "./method-name.ts";

/** What the audit log keeps of a call, whatever it was about. */
export interface AuditedCall {
  /** Who calls; a method of nodes puts "node:<id>" in its place. */
  readonly actor: string;
  /** As "rollcall.admin.v1.AdminService/ApproveNode". */
  readonly method: string;
  /** Where the call comes from, as HOST:PORT. */
  readonly address: string;
  /** The call's x-request-id, which its line in the log has too. */
  readonly requestId: string;
}

/** Describe a call for the audit log. */
export function auditedCall(context: Pick<HandlerContext, "values">, method: DescMethod): AuditedCall {
  return {
    actor: actorOf(callerOf(context)),
    method: methodName(method),
    address: context.values.get(peerKey),
    requestId: requestIdOf(context),
  };
}
