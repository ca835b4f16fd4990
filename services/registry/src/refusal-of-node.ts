import { chooseWithin, type Membership, rejectedRetry } from "@rollcall/domain";
import { type DecidedRefusal, refusalError } from "@rollcall/errors";

/**
 * The error of a node that is refused. One that an operator rejected or banned is told when to ask again, as it is on
 * its stream: soon at first, so that an approval takes effect.
 *
 * @param known the node as recorded; undefined for one that is not in the record.
 */
export function refusalOfNode(
  { nodeId, refusal }: { readonly nodeId: string; readonly refusal: DecidedRefusal },
  known: { readonly membership: Membership } | undefined,
  wallMs: number,
): Error {
  const isDecided = refusal.reason === "NODE_REJECTED" || refusal.reason === "NODE_BANNED";
  if (!isDecided) return refusalError(refusal, nodeId);
  const sinceMs = known === undefined ? 0 : wallMs - known.membership.sinceMs;
  return refusalError(refusal, nodeId, {
    retryAfterMs: chooseWithin(rejectedRetry(sinceMs), Math.random()),
  });
}
