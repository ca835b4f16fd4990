import { readFile } from "node:fs/promises";
import { fetchWhole } from "./fetch-whole.ts";

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
