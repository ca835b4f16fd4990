import type { Refusal } from "../refusal.ts";

/** A call from a browser, with the facts that identify the page that made it. */
export interface BrowserCall {
  /** The Origin header; null if there is none. */
  readonly origin: string | null;
  /**
   * `Host` or `:authority`: the name that the browser used for this server. The caller has checked that it is one of
   * the server's own names.
   */
  readonly authority: string;
  /** Whether the peer of the connection is on this machine. */
  readonly isPeerLocal: boolean;
  /** Whether the operator declares that the network between browser and server is encrypted. */
  readonly isNetworkTrusted: boolean;
}

/**
 * Whether a call is allowed and, if so, whether its connection is secure enough for a cookie with the Secure
 * attribute.
 */
export type OriginDecision =
  | { readonly ok: true; readonly isSecure: boolean }
  | { readonly ok: false; readonly refusal: Refusal<"ORIGIN_NOT_ALLOWED" | "CONSOLE_NEEDS_TLS"> };

/**
 * Check that a call comes from a page of this server: both name and port must match, although cookies' SameSite
 * attribute ignores the port. Without TLS, the browser must be on this machine and use a loopback name for the server.
 * Only browsers set the Origin header, and pages cannot change it. Behind a proxy, it therefore shows which scheme the
 * browser uses.
 */
export function checkBrowserOrigin({ origin, authority, isPeerLocal, isNetworkTrusted }: BrowserCall): OriginDecision {
  const scheme = originOf(origin, authority);
  if (scheme === null) {
    const shown = (origin ?? "none").slice(0, MOST_SHOWN);
    return {
      ok: false,
      refusal: {
        reason: "ORIGIN_NOT_ALLOWED",
        message: `the call comes from a page at ${shown}, not from this server; open the console at its own address`,
        metadata: { origin: shown },
      },
    };
  }
  if (scheme === "https") return { ok: true, isSecure: true };
  if (isLoopbackName(hostOf(authority)) && (isPeerLocal || isNetworkTrusted)) return { ok: true, isSecure: false };
  return {
    ok: false,
    refusal: {
      reason: "CONSOLE_NEEDS_TLS",
      message:
        "the console refuses sign-ins over an unencrypted connection, because anyone on the network could use the " +
        "sign-in code",
      metadata: { host: authority.slice(0, MOST_SHOWN) },
    },
  };
}

const MOST_SHOWN = 260;
const DEFAULT_PORTS = { http: "80", https: "443" } as const;

/** The scheme of an origin if the origin is this server's; otherwise null. */
function originOf(origin: string | null, authority: string): "http" | "https" | null {
  const [, scheme, from] = /^(https?):\/\/([^/@?#\s]+)$/.exec(origin ?? "") ?? [];
  if (from === undefined || (scheme !== "http" && scheme !== "https") || authority === "") return null;
  return complete(from, scheme) === complete(authority, scheme) ? scheme : null;
}

/** Add the default port if there is none, and convert to lower case. */
function complete(authority: string, scheme: keyof typeof DEFAULT_PORTS): string {
  const small = authority.toLowerCase();
  return /:\d+$/.test(small) ? small : `${small}:${DEFAULT_PORTS[scheme]}`;
}

function hostOf(authority: string): string {
  return authority.toLowerCase().replace(/:\d+$/, "");
}

function isLoopbackName(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
