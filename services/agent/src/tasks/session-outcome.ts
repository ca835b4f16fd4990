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

/**
 * Where to open the next stream: where the server says, else anywhere but here, else here: one address may stand for
 * many replicas.
 */
export function placesToMoveTo(here: string, named: readonly string[], known: readonly string[]): readonly string[] {
  if (named.length > 0) return named;
  const others = known.filter((endpoint) => endpoint !== here);
  return others.length > 0 ? others : known;
}
