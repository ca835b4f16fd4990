import { readFile } from "node:fs/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

/** How a document is fetched. */
export interface FetchJsonOptions {
  /** Certificates that vouch for the server, in PEM; null for those that Node.js knows. */
  readonly caFile: string | null;
  readonly timeoutMs: number;
  /** Holds the token to send, where the server tells nothing without one; it is read each time. */
  readonly tokenFile?: string | null;
}

/** No set of keys is larger; what is must not fill the memory. */
const LARGEST_BYTES = 1_048_576;

/**
 * Fetch a JSON document by GET. Redirects are not followed: what is fetched decides whom to trust.
 * Rejects when it cannot be had within the time, is larger than 1 MiB, or is no JSON.
 */
export async function fetchJson(url: URL, options: FetchJsonOptions): Promise<unknown> {
  const { caFile, timeoutMs, tokenFile = null } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  const token = tokenFile === null ? null : (await readFile(tokenFile, "utf8")).trim();
  const headers = { accept: "application/json", ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
  const common = { headers, signal };
  // Read each time: a certificate that was renewed needs no restart.
  const ca = caFile === null ? {} : { ca: await readFile(caFile) };
  const body = await new Promise<Buffer>((resolve, reject) => {
    const isTls = url.protocol === "https:";
    // No agent: a connection is not kept for what is fetched every ten minutes.
    const request = isTls
      ? requestHttps(url, { ...common, ...ca, agent: false })
      : requestHttp(url, { ...common, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      if (response.statusCode !== 200) {
        request.destroy(new Error(`${url.href} answers with status ${response.statusCode}`));
        return;
      }
      response.on("error", reject);
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > LARGEST_BYTES) request.destroy(new Error(`${url.href} answers too much`));
        else chunks.push(chunk);
      });
      response.on("end", () => resolve(Buffer.concat(chunks)));
    });
    request.end();
  });
  return JSON.parse(body.toString("utf8"));
}
