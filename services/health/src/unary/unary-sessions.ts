import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ReportHeartbeatRequest, ReportHeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { refuse } from "@rollcall/errors";
import type { Store } from "@rollcall/store";
import { openSessionToken, type SessionClaims } from "./session-token.ts";

/** Sessions by calls, where a call for one arrives. */
export interface UnarySessions {
  /**
   * Open a session for a Hello whose nonce was consumed. Throws for the reasons for which a stream's Hello is refused.
   */
  open(hello: Hello, nonce: Uint8Array, peer: string): Promise<ReportHeartbeatResponse>;
  /** The claims of a token. Throws SESSION_TOKEN_INVALID. */
  claimsOf(request: ReportHeartbeatRequest): SessionClaims;
  /** Handle a heartbeat or a goodbye of a node that this process holds. */
  take(request: ReportHeartbeatRequest): ReportHeartbeatResponse;
}

/** The claims of the token that a call carries. Throws SESSION_TOKEN_INVALID. */
export function claimsIn({ nodeId, step }: ReportHeartbeatRequest, store: Pick<Store, "clusterSecret">): SessionClaims {
  const isCarried = step.case === "beat" || step.case === "goodbye";
  const token = isCarried ? step.value.sessionToken : "";
  const claims = openSessionToken(store.clusterSecret(), token);
  if (claims?.nodeId === nodeId) return claims;
  const message = `the session token does not belong to node ${nodeId}; open a session without one`;
  throw refuse("SESSION_TOKEN_INVALID", message, { metadata: { node: nodeId } });
}

/** The error of a call whose session ended for an unknown reason. */
export function sessionMoved(node: string) {
  const message = `this session of node ${node} is over; open a new one without a token`;
  return refuse("SESSION_SUPERSEDED", message, { metadata: { node } });
}
