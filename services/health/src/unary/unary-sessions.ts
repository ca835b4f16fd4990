import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ReportHeartbeatRequest, ReportHeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Store } from "@rollcall/store";
import type { Farewell } from "../replica/farewell.ts";
import { openSessionToken, type SessionClaims } from "./session-token.ts";

/** What a call for a session comes to: what the agent is told of it, or why it has none. */
export type UnaryAnswer =
  | { readonly ok: true; readonly response: ReportHeartbeatResponse }
  | { readonly ok: false; readonly farewell: Farewell };

/** Sessions by calls, where a call for one arrives. */
export interface UnarySessions {
  /** Open a session for a Hello whose nonce was consumed; it is refused for the same reasons as that of a stream. */
  open(hello: Hello, nonce: Uint8Array, peer: string): Promise<UnaryAnswer>;
  /** The claims of the token that a call carries; null for a token that does not belong to its node. */
  claimsOf(request: ReportHeartbeatRequest): SessionClaims | null;
  /** Handle a heartbeat or a goodbye of a node that this process holds. */
  take(request: ReportHeartbeatRequest): UnaryAnswer;
}

/** See UnarySessions.claimsOf(). */
export function claimsIn(
  { nodeId, step }: ReportHeartbeatRequest,
  store: Pick<Store, "clusterSecret">,
): SessionClaims | null {
  const isCarried = step.case === "beat" || step.case === "goodbye";
  const claims = openSessionToken(store.clusterSecret(), isCarried ? step.value.sessionToken : "");
  return claims?.nodeId === nodeId ? claims : null;
}

export function answered(response: ReportHeartbeatResponse): UnaryAnswer {
  return { ok: true, response };
}

export function turnedAway(farewell: Farewell): UnaryAnswer {
  return { ok: false, farewell };
}
