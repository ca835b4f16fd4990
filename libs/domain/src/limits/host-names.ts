/** What a request says about its sender and its addressee. */
export interface NamedRequest {
  readonly method: string;
  /** `Host` or `:authority`; "" for none. */
  readonly authority: string;
  /** Whether it has the header `origin`, or any whose name begins with `sec-fetch-`. No page can leave them out. */
  readonly hasBrowserHeaders: boolean;
}

/**
 * Decide whether a request may be answered, by the name that it was sent to: whatever a browser can have made must name
 * this server. A page of another site reaches a server under a name of its own, which it has resolve to the server's
 * address.
 *
 * @param names of the server, besides its loopback ones: exact ones; `*.example.org` for all below it; `*` for any.
 */
export function isRequestForUs(request: NamedRequest, names: readonly string[]): boolean {
  return !mayBeBrowsers(request) || isHostAllowed(request.authority, names);
}

/**
 * Browsers send `origin` with whatever is neither GET nor HEAD, so that a POST without it is a program's. With a GET of
 * a page's own origin in clear text they send nothing that would tell: any such request can be theirs.
 */
function mayBeBrowsers({ method, hasBrowserHeaders }: NamedRequest): boolean {
  return hasBrowserHeaders || method !== "POST";
}

/**
 * An address cannot be made to mean another, and no other site can own a name below `localhost`. A request without an
 * authority is no browser's.
 */
function isHostAllowed(authority: string, names: readonly string[]): boolean {
  if (authority === "") return true;
  const host = hostOf(authority);
  if (host === null) return false;
  return isAddress(host) || isMatch(host, LOOPBACK) || isMatch(host, names);
}

const LOOPBACK = ["localhost", "*.localhost"];
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^\s:@/[\]]+)(?::\d{0,5})?$/i;

/** The host of an authority, as names are compared; null if it is not one. */
function hostOf(authority: string): string | null {
  const [, host] = AUTHORITY.exec(authority) ?? [];
  return host === undefined ? null : normalised(host);
}

/** Browsers write addresses in full before they send them; what else looks like a number is a name to us. */
function isAddress(host: string): boolean {
  const parts = host.split(".");
  const isIpv4 = parts.length === 4 && parts.every((it) => /^\d{1,3}$/.test(it) && Number(it) < 256);
  return isIpv4 || host.startsWith("[");
}

function isMatch(host: string, names: readonly string[]): boolean {
  return names.some((name) => {
    if (name === "*") return true;
    const wanted = normalised(name);
    if (!wanted.startsWith("*.")) return host === wanted;
    return host.length > wanted.length - 1 && host.endsWith(wanted.slice(1));
  });
}

function normalised(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
