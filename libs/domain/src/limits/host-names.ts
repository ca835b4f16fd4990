/** The parts of a request that show its sender and the name of its destination. */
export interface NamedRequest {
  readonly method: string;
  /** `Host` or `:authority`; "" for none. */
  readonly authority: string;
  /**
   * Whether the request has the header `origin`, or a header whose name starts with `sec-fetch-`. Pages cannot remove
   * these headers.
   */
  readonly hasBrowserHeaders: boolean;
}

/**
 * Decide whether to answer a request. If a browser may have sent it, its authority must be a name of this server. This
 * prevents DNS rebinding: a hostile site can make one of its names resolve to this server's address, and its pages
 * then reach the server under that name.
 *
 * @param names the server's names in addition to loopback names: exact names, `*.example.org` for all names below it,
 *   or `*` for any.
 */
export function isRequestForUs(request: NamedRequest, names: readonly string[]): boolean {
  return !mayBeBrowsers(request) || isHostAllowed(request.authority, names);
}

/**
 * Whether a browser may have sent a request. Browsers send `origin` with every method except GET and HEAD, so a POST
 * without it comes from a program. A same-origin GET over unencrypted HTTP has no header that identifies a browser, so
 * any GET may come from a browser.
 */
function mayBeBrowsers({ method, hasBrowserHeaders }: NamedRequest): boolean {
  return hasBrowserHeaders || method !== "POST";
}

/**
 * Whether requests to an authority are allowed. Addresses are allowed because they cannot be rebound, and names below
 * `localhost` because no other site can own one. A request without an authority is allowed because it does not come
 * from a browser.
 */
function isHostAllowed(authority: string, names: readonly string[]): boolean {
  if (authority === "") return true;
  const host = hostOf(authority);
  if (host === null) return false;
  return isAddress(host) || isMatch(host, LOOPBACK) || isMatch(host, names);
}

const LOOPBACK = ["localhost", "*.localhost"];
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^\s:@/[\]]+)(?::\d{0,5})?$/i;

/** The host of an authority, normalized for comparison; null if it is not valid. */
function hostOf(authority: string): string | null {
  const [, host] = AUTHORITY.exec(authority) ?? [];
  return host === undefined ? null : normalised(host);
}

/**
 * Whether a host is an address in its full form, to which browsers convert addresses before they send them. Any other
 * host that looks like a number is treated as a name.
 */
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
