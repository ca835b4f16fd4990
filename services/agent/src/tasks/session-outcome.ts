import type { Membership } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { MembershipState } from "@rollcall/domain";
import { membershipStateFromProto } from "@rollcall/wire";
import type { SessionEnd } from "../stream/session-end.ts";

/** A Hello of this move may have taken the session although its Welcome was lost: then nobody else has the identity. */
export function endOfMove(end: SessionEnd): SessionEnd {
  const isSuperseded = end.kind === "refused" && end.reason === "SESSION_SUPERSEDED";
  return isSuperseded ? { kind: "silent" } : end;
}

/** Whether the server refused the key with which the stream was opened. */
export function isKeyRefused(end: SessionEnd): boolean {
  return end.kind === "refused" && end.reason === "PROOF_INVALID";
}

/** The state of a membership, as far as this agent knows its name. */
export function stateOf(membership: Membership | undefined): MembershipState | undefined {
  return membership && membershipStateFromProto(membership.state);
}
