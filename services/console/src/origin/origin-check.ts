import { checkBrowserOrigin } from "@rollcall/domain";
import { isLoopbackAddress, type RequestCheck } from "@rollcall/rpc";
import { consoleError } from "../sign-in/convert.ts";
import { sessionCookie } from "../sign-in/session-cookie.ts";
import { bearerOfHalves } from "../sign-in/session-secret.ts";

/** The header that proves that a page is one of ours and owns its session. */
const PROOF_HEADER = "x-rollcall-console";

export interface OriginCheckOptions {
  readonly clusterId: string;
  /** See checkBrowserOrigin(). */
  readonly isNetworkTrusted: boolean;
}

/**
 * The origin check of an API port. Every process has it, because one host can lead to several processes, and pages then
 * call each of them directly.
 *
 * It admits sessions. If a request has the header of our pages, it checks the origin, and turns the two halves of the
 * session's secret into a bearer token. After that the request is a normal call. A request with its own token or
 * without the header passes unchanged, because pages of another origin cannot send the header, and the cookie is
 * useless without the header.
 */
export function originCheck({ clusterId, isNetworkTrusted }: OriginCheckOptions): RequestCheck {
  const cookie = sessionCookie(clusterId);
  return (request) => {
    const { headers } = request;
    const proof = headers[PROOF_HEADER];
    if (proof === undefined || headers.authorization !== undefined) return null;
    const { ":authority": authority, host, origin } = headers;
    const decision = checkBrowserOrigin({
      origin: typeof origin === "string" ? origin : null,
      authority: String(authority ?? host ?? ""),
      isPeerLocal: isLoopbackAddress(request.socket.remoteAddress ?? ""),
      isNetworkTrusted,
    });
    if (!decision.ok) return consoleError(decision.refusal, "console");
    const half = cookie.read(headers.cookie, decision.isSecure);
    const bearer = half === null ? null : bearerOfHalves(half, String(proof));
    if (bearer !== null) headers.authorization = `Bearer ${bearer}`;
    return null;
  };
}
