import { readFile } from "node:fs/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isSafeUrl } from "@rollcall/identity/oidc";

/** What openid-client asks an issuer with. */
export type IssuerFetch = (url: string, options: FetchOptions) => Promise<Response>;

interface FetchOptions {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
}

/** No answer of an issuer is larger; what is must not fill the memory. */
const LARGEST_BYTES = 1_048_576;

/**
 * Ask an issuer, trusting the authorities of `caFile` in place of those that Node.js knows; null for the latter.
 * Redirects are not followed, and nothing is sent over clear text but to this machine: a code and its secret go there.
 */
export function issuerFetch(caFile: string | null): IssuerFetch {
  return async (address, { method, headers, body, signal }) => {
    const url = new URL(address);
    if (!isSafeUrl(url)) throw new Error(`${url.origin} is not an https:// address`);
    // Read each time: a certificate that was renewed needs no restart.
    const ca = caFile === null ? {} : { ca: await readFile(caFile) };
    const sent = body === undefined || body === null ? null : String(body);
    const length = sent === null ? {} : { "content-length": String(Buffer.byteLength(sent)) };
    const options = { method, headers: { ...headers, ...length }, ...(signal == null ? {} : { signal }) };
    return new Promise<Response>((resolve, reject) => {
      // No agent: a connection is not kept for what is asked a few times an hour.
      const request =
        url.protocol === "https:"
          ? requestHttps(url, { ...options, ...ca, agent: false })
          : requestHttp(url, { ...options, agent: false });
      request.on("error", reject);
      request.on("response", (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("error", reject);
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > LARGEST_BYTES) request.destroy(new Error(`${url.origin} answers too much`));
          else chunks.push(chunk);
        });
        response.on("end", () => {
          const type = response.headers["content-type"] ?? "";
          const status = response.statusCode ?? 500;
          const hasBody = status !== 204 && status !== 205 && status !== 304;
          const body = hasBody ? Buffer.concat(chunks) : null;
          try {
            resolve(new Response(body, { status, headers: { "content-type": type } }));
          } catch (cause) {
            reject(new Error(`${url.origin} answers with the status ${status}`, { cause }));
          }
        });
      });
      request.end(sent ?? undefined);
    });
  };
}
