import type { NodeRow } from "./node-row.ts";

/** Why a machine that waits may be one that is known already. */
export interface LikelyDuplicate {
  readonly id: string;
  readonly why: string;
}

/** Find nodes that look like the same machine, the most certain first, a bounded number of them. */
export function likelyDuplicates(row: NodeRow, rows: Iterable<NodeRow>, most = 3): readonly LikelyDuplicate[] {
  const found: LikelyDuplicate[] = [];
  const sureness = ({ why }: LikelyDuplicate) => SUREST_FIRST.findIndex((start) => why.startsWith(start));
  const macs = new Set(row.macs);
  for (const other of rows) {
    if (other.id === row.id || other.type !== row.type) continue;
    const why = sameness(row, other, macs);
    if (why !== null) found.push({ id: other.id, why });
  }
  return found.sort((a, b) => sureness(a) - sureness(b)).slice(0, most);
}

const SUREST_FIRST = ["same key", "same hardware", "same host"];

function sameness(row: NodeRow, other: NodeRow, macs: ReadonlySet<string>): string | null {
  if (row.keyFingerprint !== "" && other.keyFingerprint === row.keyFingerprint) return "same key";
  const mac = other.macs.find((one) => macs.has(one));
  if (mac !== undefined) return `same hardware address ${mac}`;
  return row.hostname !== "" && other.hostname === row.hostname ? `same host name ${row.hostname}` : null;
}
