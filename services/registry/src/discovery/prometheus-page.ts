import { setImmediate } from "node:timers/promises";
import { refuse, refuseFields } from "@rollcall/errors";
import type { HttpPage, PageRequest } from "@rollcall/rpc";
import { type CallStore, readListing } from "@rollcall/store";
import { parseLabelSelector } from "../convert.ts";
import { scrapeTarget } from "./scrape-target.ts";

/** Where Prometheus reads its targets. */
const PATH = "/v1/prometheus/sd";

/** Most bytes of an answer: about 60,000 nodes. Prometheus knows no pages. */
const MOST_BYTES = 67_108_864;
/** After this many bytes the process turns to others. */
const BYTES_A_TURN = 32_768;
/** Prometheus' own node exporter. */
const DEFAULT_PORT = 9_100;
const PARAMETERS = ["selector", "port"];

/**
 * The compute nodes that are approved, as targets of Prometheus: those without a connection too, so that it misses
 * them.
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
      return { contentType: "application/json; charset=utf-8", pieces };
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
      if (ofTurn < BYTES_A_TURN) continue;
      flush();
      await setImmediate();
      signal.throwIfAborted();
    }
  }
  if (texts.length > 0 || pieces.length === 0) flush();
  pieces.push(Buffer.from("]"));
  return pieces;
}

/** Read the parameters. Throws INVALID_SELECTOR, or INVALID_REQUEST with every other violation. */
function parseQuery(query: URLSearchParams) {
  const violations = [...new Set(query.keys())].flatMap((name) => {
    if (!PARAMETERS.includes(name)) {
      return [{ field: name, description: `is not known; there are ${PARAMETERS.join(" and ")}` }];
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
    `the targets have more than ${mostBytes} bytes, the most that one answer may have; choose fewer nodes with the ` +
    "parameter selector, in several jobs of Prometheus";
  return refuse("TOO_MANY_TARGETS", message, { metadata: { bytes: String(mostBytes) } });
}
