/** Output of a container, with the time at which its engine received it. */
export interface LogPart {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly data: Uint8Array;
}

/** Time within which parts are joined. The store keeps no finer times. */
const JOINED_MS = 1_000;

/** Join parts that were written within a second, so that many short lines are stored in few writes. */
export function joinParts(parts: readonly LogPart[]): readonly LogPart[] {
  const groups: { readonly atMs: number; readonly pieces: Uint8Array[] }[] = [];
  for (const { atMs, data } of parts) {
    const last = groups.at(-1);
    if (last !== undefined && atMs >= last.atMs && atMs < last.atMs + JOINED_MS) last.pieces.push(data);
    else groups.push({ atMs, pieces: [data] });
  }
  return groups.map(({ atMs, pieces }) => ({ atMs, data: Buffer.concat(pieces) }));
}
