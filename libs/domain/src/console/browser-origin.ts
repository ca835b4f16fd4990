import type { Refusal } from "../refusal.ts";

/** A call that a browser has made, as far as it tells which page made it. */
export interface BrowserCall {
  /** The header Origin; null when there is none. */
  readonly origin: string | null;
  /** `Host` or `:authority`: the name by which the browser knows this server. It is one of ours. */
  readonly authority: string;
  /** Whether the other end of the connection is on this machine. */
  readonly isPeerLocal: boolean;
  /** Whether the operator says that the network in between encrypts by itself. */
  readonly isNetworkTrusted: boolean;
}

/** What the browser has of its connection: whether a cookie can be kept for secure connections alone. */
export type BrowserVerdict =
  | { readonly ok: true; readonly isSecure: boolean }
  | { readonly ok: false; readonly refusal: Refusal<"ORIGIN_NOT_ALLOWED" | "CONSOLE_NEEDS_TLS"> };

/**
 * Judge whether a call comes from a page of this very server: the same name, and the same port, which the SameSite of
 * cookies does not look at. Over clear text the browser must be on this machine, and know the server by a name of
 * it. Browsers alone write the header Origin, and no page can change it, so that it also tells what the browser speaks
 * to a proxy in between.
 */
export function judgeBrowser({ origin, authority, isPeerLocal, isNetworkTrusted }: BrowserCall): BrowserVerdict {
  const scheme = originOf(origin, authority);
  if (scheme === null) {
    const shown = (origin ?? "none").slice(0, MOST_SHOWN);
    return {
      ok: false,
      refusal: {
        reason: "ORIGIN_NOT_ALLOWED",
        message: `the call comes from a page of ${shown}, not of this server: open the console under its own address`,
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
      message: "the console takes no sign-in over clear text, since anyone on the way could use it",
      metadata: { host: authority.slice(0, MOST_SHOWN) },
    },
  };
}

const MOST_SHOWN = 260;
const DEFAULT_PORTS = { http: "80", https: "443" } as const;

/** The scheme of an origin that is this server's; null for one that is not. */
function originOf(origin: string | null, authority: string): "http" | "https" | null {
  const [, scheme, from] = /^(https?):\/\/([^/@?#\s]+)$/.exec(origin ?? "") ?? [];
  if (from === undefined || (scheme !== "http" && scheme !== "https") || authority === "") return null;
  return complete(from, scheme) === complete(authority, scheme) ? scheme : null;
}

/** With its port, in small letters. */
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
