import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ReportHeartbeatRequest, ReportHeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Store } from "@rollcall/store";
import type { Farewell } from "../replica/farewell.ts";
import { errorOf } from "../session/farewell-error.ts";
import { openSessionToken, type SessionClaims } from "./session-token.ts";

/** The result of a call: the response for the agent, or the farewell that says why there is no session. */
export type UnaryAnswer =
  | { readonly ok: true; readonly response: ReportHeartbeatResponse }
  | { readonly ok: false; readonly farewell: Farewell };

/** Unary sessions, in the process that receives their calls. */
export interface UnarySessions {
  /** Open a session for a Hello whose nonce was used up. The session is refused for the same reasons as on a stream. */
  open(hello: Hello, nonce: Uint8Array, peer: string): Promise<UnaryAnswer>;
  /** The claims of the token that a call carries; null if the token does not belong to the node of the call. */
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

/** Return a unary answer's response, or throw its farewell as an error that every protocol can carry. */
export function responseOf(answer: UnaryAnswer): ReportHeartbeatResponse {
  if (answer.ok) return answer.response;
  throw errorOf(answer.farewell);
}
