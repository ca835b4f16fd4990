import type { DescMethod } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { NodeSelector } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import type { CommandSource } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import { type AuditedCall, auditedCall } from "@rollcall/rpc";
import type { NewAuditEntry, RequestKey } from "@rollcall/store";
import type { AdminDeps } from "./deps.ts";
import type { DecideNode } from "./node-decision.ts";

/** What every verb of admin is asked with. */
export interface NodeRequest {
  readonly node: string;
  readonly selector?: NodeSelector | undefined;
  readonly reason: string;
  readonly etag: string;
  readonly requestId: string;
  readonly validateOnly: boolean;
  readonly pageToken: string;
}

/** A verb of admin, called. */
export interface NodeVerb {
  readonly method: DescMethod;
  readonly request: NodeRequest;
  readonly context: Pick<HandlerContext, "values">;
  readonly decide: DecideNode;
  /** Whether it decides by what was detected, which replicas must not change meanwhile. */
  readonly readsHealth?: boolean;
  /** Whether it places bans, and so has to keep out registrations while it does. */
  readonly placesBans?: boolean;
}

/** A verb whose request is as it should be, and who gives the word. */
export interface NodeCommand {
  readonly verb: NodeVerb;
  readonly by: CommandSource;
  readonly call: AuditedCall;
}

/** Check what the schema cannot, and tell who calls. Throws INVALID_REQUEST. */
export function readCommand({ clock }: Pick<AdminDeps, "clock">, verb: NodeVerb): NodeCommand {
  const { reason, etag, selector, pageToken } = verb.request;
  const violations = [
    ...(selector !== undefined && etag !== ""
      ? [{ field: "etag", description: "an etag is of one node; leave it out with a selector" }]
      : []),
    ...(selector === undefined && pageToken !== ""
      ? [{ field: "page_token", description: "pages are those of a selector" }]
      : []),
  ];
  if (violations.length > 0) throw refuseFields("INVALID_REQUEST", violations);
  const call = auditedCall(verb.context, verb.method);
  return { verb, call, by: { actor: call.actor, message: reason, atMs: clock.wallMs() } };
}

/**
 * What names this request; null when nothing does, or when nothing is to be done.
 *
 * @param part of the request that is answered by itself; empty for the whole.
 */
export function requestKeyOf({ verb, call }: NodeCommand, part = ""): RequestKey | null {
  const { method, request } = verb;
  if (request.requestId === "" || request.validateOnly) return null;
  const fullMethod = `/${method.parent.typeName}/${method.name}${part}`;
  return { requestId: request.requestId, method: fullMethod, caller: call.actor };
}

/** The audit row of what became of a target. */
export function auditOf({ call, verb }: NodeCommand, target: string, outcome: string): NewAuditEntry {
  return { ...call, target, reason: verb.request.reason, outcome };
}
