import { createHash } from "node:crypto";
import { create, fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { checkAgentLabels, isUsableGpu, type Json, type LabelViolation } from "@rollcall/domain";

/** A node's report about itself, in its stored form. The domain's type InfoReport has these fields. */
export interface NodeInfoRow {
  /** The report as protobuf JSON, with sorted keys and including labels. */
  readonly info: { readonly [key: string]: Json };
  /** SHA-256 of `info` in hexadecimal: equal digests mean equal reports. */
  readonly digest: string;
  /** Size of `info` as text, in bytes. The size of the message is at most the same. */
  readonly bytes: number;
  /** The numbers that listings sort by and add up. */
  readonly summary: {
    /** Logical processors. */
    readonly cores: number;
    readonly memoryBytes: number;
    readonly diskBytes: number;
    readonly gpus: number;
  };
  readonly agentLabels: Readonly<Record<string, string>>;
}

/**
 * Maximum size of a report as protobuf JSON. A machine with 16 GPUs, 16 NUMA nodes and 64 labels needs less than a
 * third of it.
 */
export const MOST_NODE_INFO_BYTES = 65_536;

/** The highest number of cores, which is the maximum of a database column. No machine has more. */
const MOST_CORES = 2 ** 31 - 1;

/**
 * Convert a node's report about itself. Unknown fields are dropped. Check the result with nodeInfoViolations before
 * saving it.
 */
export function nodeInfoToRow(info: NodeInfo): NodeInfoRow {
  const json = canonicalInfo(info);
  const text = JSON.stringify(json);
  return {
    info: json,
    digest: createHash("sha256").update(text).digest("hex"),
    bytes: Buffer.byteLength(text),
    summary: {
      cores: Math.min(info.cpu?.threads || info.cpu?.cores || 0, MOST_CORES),
      memoryBytes: toSafeNumber(info.memoryBytes ?? 0n),
      diskBytes: toSafeNumber(info.diskBytes ?? 0n),
      gpus: info.gpus.filter(isUsableGpu).length,
    },
    agentLabels: { ...info.labels },
  };
}

/** Convert a stored report, including older forms, to a message. Anything else yields an empty message. */
export function rowToNodeInfo(info: Json): NodeInfo {
  try {
    return fromJson(NodeInfoSchema, info as JsonValue, { ignoreUnknownFields: true });
  } catch {
    // Return an empty message, because a row that another program wrote must not make the node unreadable. The
    // node's next report replaces the row.
    return create(NodeInfoSchema);
  }
}

/**
 * The digest in a Hello. It saves the agent from sending an unchanged report. It has 32 bytes and is the binary form
 * of NodeInfoRow.digest. An agent that sends any other digest has to send its report each time.
 */
export function nodeInfoDigest(info: NodeInfo): Uint8Array {
  return createHash("sha256")
    .update(JSON.stringify(canonicalInfo(info)))
    .digest();
}

/**
 * All reasons why a report cannot be stored, in addition to the rules in the proto file. Report violations about
 * labels as INVALID_LABEL, and all others as INVALID_REQUEST.
 */
export function nodeInfoViolations(report: Pick<NodeInfoRow, "info" | "bytes" | "agentLabels">): {
  readonly labels: readonly LabelViolation[];
  readonly others: readonly LabelViolation[];
} {
  const { info, bytes, agentLabels } = report;
  if (bytes > MOST_NODE_INFO_BYTES) {
    const description = `has ${bytes} bytes as protobuf JSON, more than the limit of ${MOST_NODE_INFO_BYTES}`;
    // Do not check the rest, because the response would grow with the request.
    return { labels: [], others: [{ field: "info", description }] };
  }
  const fields: string[] = [];
  findTextsWithNul(info, "info", fields);
  const description = "must not contain the character U+0000";
  const others = fields.map((field) => ({ field, description }));
  return { labels: checkAgentLabels(agentLabels), others };
}

function canonicalInfo(info: NodeInfo): { readonly [key: string]: Json } {
  const json = toJson(NodeInfoSchema, info) as JsonObject;
  return sortKeys(json) as { readonly [key: string]: Json };
}

/**
 * Sort the keys of maps. Map entries arrive in the order of sending, but reports that differ only in that order are
 * equal.
 */
function sortKeys(value: JsonValue): Json {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== "object") return value;
  const sorted: Record<string, Json> = {};
  for (const key of Object.keys(value).sort()) sorted[key] = sortKeys(value[key] ?? null);
  return sorted;
}

/** Find strings that contain U+0000. Postgres refuses them, and one refused row fails its whole batch. */
function findTextsWithNul(value: Json, path: string, found: string[]): void {
  if (typeof value === "string") {
    if (value.includes("\0")) found.push(path);
  } else if (value !== null && typeof value === "object") {
    for (const [key, item] of Object.entries(value)) findTextsWithNul(item, `${path}.${key}`, found);
  }
}

/** Limit a size to 2^53 - 1 bytes, so that sums stay exact. No machine has more. */
function toSafeNumber(value: bigint): number {
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}
