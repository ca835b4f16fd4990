import type { HandlerContext } from "@connectrpc/connect";
import { judgeBrowser } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { isLoopbackAddress, peerOfCall } from "@rollcall/rpc";

/** A call of one of our pages, in a browser. */
export interface BrowserCall {
  /** Whether cookies can be kept for secure connections alone. */
  readonly isSecure: boolean;
  /** As the browser knows this server: "https://rollcall.example". */
  readonly origin: string;
  /** HOST:PORT of the client. */
  readonly peer: string;
}

/** Check that a page of this server made a call. Throws ORIGIN_NOT_ALLOWED or CONSOLE_NEEDS_TLS. */
export function browserCallOf(
  context: Pick<HandlerContext, "values" | "requestHeader" | "url">,
  isNetworkTrusted: boolean,
): BrowserCall {
  const peer = peerOfCall(context);
  const origin = context.requestHeader.get("origin");
  const verdict = judgeBrowser({
    origin,
    authority: new URL(context.url).host,
    isPeerLocal: isLoopbackAddress(peer.replace(/:\d+$/, "")),
    isNetworkTrusted,
  });
  if (!verdict.ok) throw refusalError(verdict.refusal, "console");
  return { isSecure: verdict.isSecure, origin: origin ?? "", peer };
}
