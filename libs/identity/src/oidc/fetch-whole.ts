import { readFile } from "node:fs/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

/** What is sent. */
export interface WholeRequest {
  /** Certificates that vouch for the server, in PEM; null for those that Node.js knows. Read for each request. */
  readonly caFile: string | null;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null for none. */
  readonly body: string | null;
  readonly signal: AbortSignal | undefined;
}

/** What came back. */
export interface WholeAnswer {
  readonly status: number;
  /** The header Content-Type; empty for none. */
  readonly type: string;
  readonly body: Buffer;
}

/** No answer of an issuer is larger; what is must not fill the memory. */
const LARGEST_BYTES = 1_048_576;

/** Kubernetes' API servers answer 406 to who does not take their keys by the name of their own type. */
const TYPES = "application/json, application/jwk-set+json";

/** How a document is fetched. */
export interface FetchJsonOptions {
  /** Certificates that vouch for the server, in PEM; null for those that Node.js knows. */
  readonly caFile: string | null;
  readonly timeoutMs: number;
  /** Holds the token to send, where the server tells nothing without one; it is read each time. */
  readonly tokenFile?: string | null;
}

/**
 * Send a request and read the whole answer, whatever its status. Redirects are not followed: what is fetched decides
 * whom to trust. Rejects when the signal aborts, or with more than 1 MiB.
 */
export async function fetchWhole(url: URL, request: WholeRequest): Promise<WholeAnswer> {
  const { caFile, method, headers, body, signal } = request;
  // Read each time: a certificate that was renewed needs no restart.
  const ca = caFile === null ? {} : { ca: await readFile(caFile) };
  const length = body === null ? {} : { "content-length": String(Buffer.byteLength(body)) };
  // No agent: a connection is not kept for what is asked a few times an hour.
  const common = { method, headers: { ...headers, ...length }, agent: false as const };
  const options = signal === undefined ? common : { ...common, signal };
  return new Promise<WholeAnswer>((resolve, reject) => {
    const sent = url.protocol === "https:" ? requestHttps(url, { ...options, ...ca }) : requestHttp(url, options);
    sent.on("error", reject);
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("error", reject);
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > LARGEST_BYTES) sent.destroy(new Error(`${url.href} answers too much`));
        else chunks.push(chunk);
      });
      response.on("end", () => {
        const type = response.headers["content-type"] ?? "";
        resolve({ status: response.statusCode ?? 500, type, body: Buffer.concat(chunks) });
      });
    });
    sent.end(body ?? undefined);
  });
}

/**
 * Fetch a JSON document by GET. Redirects are not followed: what is fetched decides whom to trust.
 * Rejects when it cannot be had within the time, is larger than 1 MiB, or is no JSON.
 */
export async function fetchJson(url: URL, options: FetchJsonOptions): Promise<unknown> {
  const { caFile, timeoutMs, tokenFile = null } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  const token = tokenFile === null ? null : (await readFile(tokenFile, "utf8")).trim();
  const headers = { accept: TYPES, ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
  const { status, body } = await fetchWhole(url, { caFile, method: "GET", headers, body: null, signal });
  if (status !== 200) throw new Error(`${url.href} answers with status ${status}`);
  return JSON.parse(body.toString("utf8"));
}
