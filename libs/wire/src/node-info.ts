import { createHash } from "node:crypto";
import { create, fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { checkAgentLabels, isUsableGpu, type Json, type LabelViolation } from "@rollcall/domain";

/** What a node says about itself, in the form that the record keeps. InfoReport is one. */
export interface NodeInfoRecord {
  /** The message as protobuf JSON, keys sorted, labels included. */
  readonly info: { readonly [key: string]: Json };
  /** SHA-256 of `info` in hexadecimal: equal digests mean equal reports. */
  readonly digest: string;
  /** Size of `info` as text, which is no less than that of the message. */
  readonly bytes: number;
  /** The figures that listings sort and add up. */
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
 * Most bytes of a report, as protobuf JSON. A machine with 16 GPUs, 16 NUMA nodes and 64 labels has less than a third
 * of it.
 */
export const MOST_NODE_INFO_BYTES = 65_536;

/** What a column of the record holds; no machine has more. */
const MOST_CORES = 2 ** 31 - 1;

/** Convert what a node says about itself; ask nodeInfoViolations before it is saved. Unknown fields are dropped. */
export function nodeInfoToRecord(info: NodeInfo): NodeInfoRecord {
  const json = canonicalInfo(info);
  const text = JSON.stringify(json);
  return {
    info: json,
    digest: createHash("sha256").update(text).digest("hex"),
    bytes: Buffer.byteLength(text),
    summary: {
      cores: Math.min(info.cpu?.threads || info.cpu?.cores || 0, MOST_CORES),
      memoryBytes: toSafeNumber(info.memoryBytes),
      diskBytes: toSafeNumber(info.diskBytes),
      gpus: info.gpus.filter(isUsableGpu).length,
    },
    agentLabels: { ...info.labels },
  };
}

/** Read back what nodeInfoToRecord wrote, an older version's form included. Anything else comes out empty. */
export function recordToNodeInfo(info: Json): NodeInfo {
  try {
    return fromJson(NodeInfoSchema, info as JsonValue, { ignoreUnknownFields: true });
  } catch {
    // A row that was not written by us must not make the node unreadable; what it says of itself comes with its next
    // report.
    return create(NodeInfoSchema);
  }
}

/**
 * The digest that a Hello carries so that an unchanged report need not be sent: 32 bytes, the binary form of
 * NodeInfoRecord.digest. Agents must use this one; with any other they only send their report each time.
 */
export function nodeInfoDigest(info: NodeInfo): Uint8Array {
  return createHash("sha256")
    .update(JSON.stringify(canonicalInfo(info)))
    .digest();
}

/**
 * Everything about a report that the record cannot take, beyond the rules written in the proto. Those of labels are
 * INVALID_LABEL, all others INVALID_REQUEST.
 */
export function nodeInfoViolations(report: Pick<NodeInfoRecord, "info" | "bytes" | "agentLabels">): {
  readonly labels: readonly LabelViolation[];
  readonly others: readonly LabelViolation[];
} {
  const { info, bytes, agentLabels } = report;
  if (bytes > MOST_NODE_INFO_BYTES) {
    const description = `a node may describe itself in ${MOST_NODE_INFO_BYTES} bytes of protobuf JSON, not in ${bytes}`;
    // The rest is not looked at, or the answer would grow with what was sent.
    return { labels: [], others: [{ field: "info", description }] };
  }
  const fields: string[] = [];
  findTextsWithNul(info, "info", fields);
  const description = "a text may not contain the character U+0000";
  const others = fields.map((field) => ({ field, description }));
  return { labels: checkAgentLabels(agentLabels), others };
}

function canonicalInfo(info: NodeInfo): { readonly [key: string]: Json } {
  const json = toJson(NodeInfoSchema, info) as JsonObject;
  return sortKeys(json) as { readonly [key: string]: Json };
}

/** Map entries come in the order in which they were sent; two reports that differ in it alone say the same. */
function sortKeys(value: JsonValue): Json {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== "object") return value;
  const sorted: Record<string, Json> = {};
  for (const key of Object.keys(value).sort()) sorted[key] = sortKeys(value[key] ?? null);
  return sorted;
}

/** Postgres refuses U+0000 in texts, and one row that is refused fails the batch that it is part of. */
function findTextsWithNul(value: Json, path: string, found: string[]): void {
  if (typeof value === "string") {
    if (value.includes("\0")) found.push(path);
  } else if (value !== null && typeof value === "object") {
    for (const [key, item] of Object.entries(value)) findTextsWithNul(item, `${path}.${key}`, found);
  }
}

/** Sizes beyond 2^53 bytes are no machine's; they are cut so that sums stay exact. */
function toSafeNumber(value: bigint): number {
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}
