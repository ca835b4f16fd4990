import { fetchWhole } from "./fetch-whole.ts";
import { isSafeUrl } from "./issuer-url.ts";

/** The fetch function that openid-client uses. */
type IssuerFetch = (url: string, options: FetchOptions) => Promise<Response>;

interface FetchOptions {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
}

/** Statuses for which the Response constructor requires a null body. */
const WITHOUT_BODY = [204, 205, 304];

/**
 * Create the fetch function for issuers. It trusts the authorities in `caFile`, or the defaults of Node.js if `caFile`
 * is null. Because it sends codes and secrets, it follows no redirects, and uses clear text only to this machine.
 */
export function issuerFetch(caFile: string | null): IssuerFetch {
  return async (address, { method, headers, body, signal }) => {
    const url = new URL(address);
    if (!isSafeUrl(url)) throw new Error(`${url.origin} is not an https:// address`);
    const sent = body === undefined || body === null ? null : String(body);
    const answer = await fetchWhole(url, { caFile, method, headers, body: sent, signal: signal ?? undefined });
    const { status, type } = answer;
    try {
      const kept = WITHOUT_BODY.includes(status) ? null : new Uint8Array(answer.body);
      return new Response(kept, { status, headers: { "content-type": type } });
    } catch (cause) {
      throw new Error(`${url.origin} returned status ${status}`, { cause });
    }
  };
}
