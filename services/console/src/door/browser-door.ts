import { judgeBrowser } from "@rollcall/domain";
import { isLoopbackAddress, type RequestDoor } from "@rollcall/rpc";
import { consoleError } from "../sign-in/convert.ts";
import { sessionCookie } from "../sign-in/session-cookie.ts";
import { bearerOfHalves } from "../sign-in/session-secret.ts";

/** The header by which a page proves that it is one of ours, and that a session is its own. */
const PROOF_HEADER = "x-rollcall-console";

export interface BrowserDoorOptions {
  readonly clusterId: string;
  /** See judgeBrowser(). */
  readonly isNetworkTrusted: boolean;
}

/**
 * The door of an API's port, of any process: where one host leads to several, each is called by pages directly.
 *
 * It lets sessions in: a request with the header of our pages is judged by where it comes from, and its two halves of a
 * session's secret become the bearer token that they are. From there on it is a call as any other. What has a token of
 * its own, or no such header, is left alone: no page of another origin can send the header, and a cookie alone is
 * nothing.
 */
export function browserDoor({ clusterId, isNetworkTrusted }: BrowserDoorOptions): RequestDoor {
  const cookie = sessionCookie(clusterId);
  return (request) => {
    const { headers } = request;
    const proof = headers[PROOF_HEADER];
    if (proof === undefined || headers.authorization !== undefined) return null;
    const { ":authority": authority, host, origin } = headers;
    const verdict = judgeBrowser({
      origin: typeof origin === "string" ? origin : null,
      authority: String(authority ?? host ?? ""),
      isPeerLocal: isLoopbackAddress(request.socket.remoteAddress ?? ""),
      isNetworkTrusted,
    });
    if (!verdict.ok) return consoleError(verdict.refusal, "console");
    const half = cookie.read(headers.cookie, verdict.isSecure);
    const bearer = half === null ? null : bearerOfHalves(half, String(proof));
    if (bearer !== null) headers.authorization = `Bearer ${bearer}`;
    return null;
  };
}
