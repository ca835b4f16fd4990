import type { HandlerContext } from "@connectrpc/connect";
import { judgeBrowser } from "@rollcall/domain";
import { isLoopbackAddress, peerOfCall } from "@rollcall/rpc";
import { consoleError } from "./convert.ts";

/** The cookie of a cluster's sessions. */
export interface SessionCookie {
  /** Set it for so long. */
  set(value: string, isSecure: boolean, maxAgeMs: number): string;
  /** Remove it. */
  clear(isSecure: boolean): string;
  /** Its value in a request's Cookie header; null when it is not there. */
  read(header: string | undefined, isSecure: boolean): string | null;
}

/** A header that is larger is no browser's. */
const LARGEST_HEADER = 16_384;

/** A call of one of our pages, in a browser. */
export interface BrowserCall {
  /** Whether cookies can be kept for secure connections alone. */
  readonly isSecure: boolean;
  /** As the browser knows this server: "https://rollcall.example". */
  readonly origin: string;
  /** HOST:PORT of the client. */
  readonly peer: string;
}

/**
 * The cookie of a cluster. Over TLS its name begins with __Host-, so that the browser takes it from this very host
 * alone, and sends it over TLS alone. In clear text, on the loopback interface, no such cookie can be kept: the name is
 * another one, which is never looked at over TLS. Two clusters on one machine have different names.
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
      // Two of one name mean that someone else set one of them: trust neither.
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
  const verdict = judgeBrowser({
    origin,
    authority: new URL(context.url).host,
    isPeerLocal: isLoopbackAddress(peer.replace(/:\d+$/, "")),
    isNetworkTrusted,
  });
  if (!verdict.ok) throw consoleError(verdict.refusal, "console");
  return { isSecure: verdict.isSecure, origin: origin ?? "", peer };
}
