import type { HandlerContext } from "@connectrpc/connect";
import { checkBrowserOrigin } from "@rollcall/domain";
import { isLoopbackAddress, peerOfCall } from "@rollcall/rpc";
import { consoleError } from "./convert.ts";

/** The session cookie of a cluster. */
export interface SessionCookie {
  /** The Set-Cookie header that stores a value for a time. */
  set(value: string, isSecure: boolean, maxAgeMs: number): string;
  /** The Set-Cookie header that removes the cookie. */
  clear(isSecure: boolean): string;
  /** The cookie's value in a request's Cookie header; null when it is absent. */
  read(header: string | undefined, isSecure: boolean): string | null;
}

/** Maximum size of a Cookie header. Browsers do not send larger headers. */
const LARGEST_HEADER = 16_384;

/** A call of one of our pages in a browser. */
export interface BrowserCall {
  /** Whether cookies can be limited to secure connections. */
  readonly isSecure: boolean;
  /** The address of this server as the browser sees it, such as "https://rollcall.example". */
  readonly origin: string;
  /** HOST:PORT of the client. */
  readonly peer: string;
}

/**
 * The session cookie of a cluster. Over TLS its name begins with __Host-, so that the browser accepts it only from this
 * host, and sends it only over TLS. In clear text, which is used on the loopback interface, browsers reject such a
 * name, so the cookie has another name, which is ignored over TLS. Two clusters on one machine have different names.
 */
export function sessionCookie(clusterId: string): SessionCookie {
  const own = `rollcall-${clusterId.replace(/[^0-9A-Za-z]/g, "").slice(0, 12)}`;
  const nameOf = (isSecure: boolean) => (isSecure ? `__Host-${own}` : own);
  const write = (value: string, isSecure: boolean, maxAgeS: number) => {
    const secure = isSecure ? "; Secure" : "";
    return `${nameOf(isSecure)}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${secure}`;
  };
  return {
    set: (value, isSecure, maxAgeMs) => write(value, isSecure, Math.floor(maxAgeMs / 1_000)),
    clear: (isSecure) => write("", isSecure, 0),
    read: (header = "", isSecure) => {
      if (header.length > LARGEST_HEADER) return null;
      const name = `${nameOf(isSecure)}=`;
      const found = header.split("; ").filter((pair) => pair.startsWith(name));
      // If there are two cookies of this name, someone else set one of them, so trust neither.
      return found.length === 1 ? (found[0]?.slice(name.length) ?? null) : null;
    },
  };
}

/** Check that a page of this server made a call. Throws ORIGIN_NOT_ALLOWED or CONSOLE_NEEDS_TLS. */
export function browserCallOf(
  context: Pick<HandlerContext, "values" | "requestHeader" | "url">,
  isNetworkTrusted: boolean,
): BrowserCall {
  const peer = peerOfCall(context);
  const origin = context.requestHeader.get("origin");
  const decision = checkBrowserOrigin({
    origin,
    authority: new URL(context.url).host,
    isPeerLocal: isLoopbackAddress(peer.replace(/:\d+$/, "")),
    isNetworkTrusted,
  });
  if (!decision.ok) throw consoleError(decision.refusal, "console");
  return { isSecure: decision.isSecure, origin: origin ?? "", peer };
}
