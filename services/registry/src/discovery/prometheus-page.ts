import { setImmediate } from "node:timers/promises";
import { refuse, refuseFields } from "@rollcall/errors";
import type { HttpPage, PageRequest } from "@rollcall/rpc";
import { type CallStore, readListing } from "@rollcall/store";
import { parseLabelSelector } from "../convert.ts";
import { scrapeTarget } from "./scrape-target.ts";

/** The path where Prometheus reads its targets. */
const PATH = "/v1/prometheus/sd";

/** The maximum size of a response, enough for about 60,000 nodes. Prometheus does not support pages. */
const MOST_BYTES = 67_108_864;
/** Number of bytes after which to yield to other work. */
const BYTES_PER_TICK = 32_768;
/** The port of Prometheus' node exporter. */
const DEFAULT_PORT = 9_100;
const PARAMETERS = ["selector", "port"];

/**
 * Serves the approved compute nodes as targets for Prometheus. Disconnected nodes are included, so that
 * Prometheus notices that they do not respond.
 */
export function prometheusPage(
  { store }: { readonly store: CallStore },
  { mostBytes = MOST_BYTES }: { readonly mostBytes?: number } = {},
): HttpPage {
  return {
    path: PATH,
    caller: "viewer",
    deadlineMs: 60_000,
    answer: async (request) => {
      const pieces = await makePieces(store, request, mostBytes);
      const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
      return { contentType: "application/json; charset=utf-8", bytes, pieces };
    },
  };
}

async function makePieces(store: CallStore, { query, signal }: PageRequest, mostBytes: number) {
  const { selector, port } = parseQuery(query);
  const rows = readListing(store.db, {
    filter: { types: ["COMPUTE"], memberships: ["APPROVED"], ...(selector.length === 0 ? {} : { selector }) },
    orderBy: { column: "id", descending: false },
    limit: Number.MAX_SAFE_INTEGER,
    after: null,
  });
  const pieces: Uint8Array[] = [];
  let texts: string[] = [];
  let [total, ofTurn] = [2, 0];
  const flush = () => {
    pieces.push(Buffer.from(`${pieces.length === 0 ? "[" : ","}${texts.join(",")}`));
    texts = [];
    ofTurn = 0;
  };
  for await (const piece of rows) {
    for (const { node } of piece) {
      const text = JSON.stringify(scrapeTarget(node, port));
      const bytes = Buffer.byteLength(text) + 1;
      total += bytes;
      ofTurn += bytes;
      if (total > mostBytes) throw tooMany(mostBytes);
      texts.push(text);
      if (ofTurn < BYTES_PER_TICK) continue;
      flush();
      await setImmediate();
      signal.throwIfAborted();
    }
  }
  if (texts.length > 0 || pieces.length === 0) flush();
  pieces.push(Buffer.from("]"));
  return pieces;
}

/** Parse the query parameters. Throws INVALID_SELECTOR, or INVALID_REQUEST with all other violations. */
function parseQuery(query: URLSearchParams) {
  const violations = [...new Set(query.keys())].flatMap((name) => {
    if (!PARAMETERS.includes(name)) {
      return [{ field: name, description: `is not a parameter; the parameters are ${PARAMETERS.join(" and ")}` }];
    }
    return query.getAll(name).length > 1 ? [{ field: name, description: "is given more than once" }] : [];
  });
  const port = query.get("port") ?? String(DEFAULT_PORT);
  if (!/^[1-9][0-9]{0,4}$/.test(port) || Number(port) > 65_535) {
    violations.push({ field: "port", description: "is a whole number from 1 to 65535" });
  }
  if (violations.length > 0) throw refuseFields("INVALID_REQUEST", violations);
  return { selector: parseLabelSelector(query.get("selector") ?? ""), port: Number(port) };
}

function tooMany(mostBytes: number): Error {
  const message =
    `the targets exceed ${mostBytes} bytes, the limit of one response; select fewer nodes with the ` +
    "parameter selector, in several Prometheus jobs";
  return refuse("TOO_MANY_TARGETS", message, { metadata: { bytes: String(mostBytes) } });
}
