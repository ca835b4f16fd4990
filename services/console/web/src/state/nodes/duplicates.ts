import type { NodeRow } from "./node-row.ts";

/** Why a machine that waits may be one that is known already. */
export interface LikelyDuplicate {
  readonly id: string;
  readonly why: string;
}

/** Find nodes that look like the same machine, at most so many. */
export function likelyDuplicates(row: NodeRow, rows: Iterable<NodeRow>, most = 3): readonly LikelyDuplicate[] {
  const found: LikelyDuplicate[] = [];
  const macs = new Set(row.macs);
  for (const other of rows) {
    if (found.length >= most) break;
    if (other.id === row.id || other.type !== row.type) continue;
    const why = sameness(row, other, macs);
    if (why !== null) found.push({ id: other.id, why });
  }
  return found;
}

function sameness(row: NodeRow, other: NodeRow, macs: ReadonlySet<string>): string | null {
  if (row.keyFingerprint !== "" && other.keyFingerprint === row.keyFingerprint) return "same key";
  const mac = other.macs.find((one) => macs.has(one));
  if (mac !== undefined) return `same hardware address ${mac}`;
  return row.hostname !== "" && other.hostname === row.hostname ? `same host name ${row.hostname}` : null;
}
