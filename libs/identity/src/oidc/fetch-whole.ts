import { readFile } from "node:fs/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

/** A request to a server. */
export interface WholeRequest {
  /**
   * PEM file of certificates to trust for the server; null for the defaults of Node.js. The file is read for each
   * request.
   */
  readonly caFile: string | null;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The request body; null for none. */
  readonly body: string | null;
  readonly signal: AbortSignal | undefined;
}

/** The whole response of a server. */
export interface WholeAnswer {
  readonly status: number;
  /** The Content-Type header; empty when absent. */
  readonly type: string;
  readonly body: Buffer;
}

/** Maximum size of a response in bytes, to limit memory use. No issuer's response is larger. */
const LARGEST_BYTES = 1_048_576;

/**
 * The Accept header. Includes the second type, because Kubernetes API servers return their keys only to clients
 * that accept this type, and 406 to other clients.
 */
const TYPES = "application/json, application/jwk-set+json";

export interface FetchJsonOptions {
  /** PEM file of certificates to trust for the server; null for the defaults of Node.js. */
  readonly caFile: string | null;
  readonly timeoutMs: number;
  /** File with the token to send, for servers that require one. It is read for each request. */
  readonly tokenFile?: string | null;
}

/**
 * Send a request and read the whole response, whatever its status. Redirects are not followed, because the response
 * determines whom to trust. Rejects when the signal aborts or the response exceeds 1 MiB.
 */
export async function fetchWhole(url: URL, request: WholeRequest): Promise<WholeAnswer> {
  const { caFile, method, headers, body, signal } = request;
  // Read the file for each request, so that a renewed certificate needs no restart.
  const ca = caFile === null ? {} : { ca: await readFile(caFile) };
  const length = body === null ? {} : { "content-length": String(Buffer.byteLength(body)) };
  // Do not keep connections alive for a few requests per hour.
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
        if (size > LARGEST_BYTES) sent.destroy(new Error(`${url.href} returned more than 1 MiB`));
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
 * Fetch a JSON document by GET. Redirects are not followed, because the document determines whom to trust. Rejects
 * after a timeout, when the response exceeds 1 MiB, or when it is not JSON.
 */
export async function fetchJson(url: URL, options: FetchJsonOptions): Promise<unknown> {
  const { caFile, timeoutMs, tokenFile = null } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  const token = tokenFile === null ? null : (await readFile(tokenFile, "utf8")).trim();
  const headers = { accept: TYPES, ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
  const { status, body } = await fetchWhole(url, { caFile, method: "GET", headers, body: null, signal });
  if (status !== 200) throw new Error(`${url.href} returned status ${status}`);
  return JSON.parse(body.toString("utf8"));
}
