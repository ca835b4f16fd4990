import { fetchWhole, isSafeUrl } from "@rollcall/identity/oidc";

/** What openid-client asks an issuer with. */
export type IssuerFetch = (url: string, options: FetchOptions) => Promise<Response>;

interface FetchOptions {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
}

/** Answers that have no body, as Response wants it. */
const WITHOUT_BODY = [204, 205, 304];

/**
 * Ask an issuer, trusting the authorities of `caFile` in place of those that Node.js knows; null for the latter.
 * Redirects are not followed, and nothing is sent over clear text but to this machine: a code and its secret go there.
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
      throw new Error(`${url.origin} answers with the status ${status}`, { cause });
    }
  };
}
