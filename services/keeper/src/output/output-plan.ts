/** The streams of an execution. */
export type StreamName = "stdout" | "stderr";

/** How much of an output stream is kept. */
export interface OutputRules {
  readonly maxFileBytes: number;
  readonly maxFiles: number;
}

/** One file of a stream. Its name is the offset at which it begins, in bytes since the start of the execution. */
export interface OutputFile {
  readonly start: number;
  readonly bytes: number;
}

/** The actions for a chunk of output, in order. */
export type OutputAction =
  | { readonly kind: "append"; readonly start: number; readonly from: number; readonly to: number }
  | { readonly kind: "remove"; readonly start: number };

/** The files of a stream after a chunk was written, and the actions that lead to them. */
export interface OutputStep {
  readonly files: readonly OutputFile[];
  readonly actions: readonly OutputAction[];
}

/** The offset at which a stream ends. */
export function endOf(files: readonly OutputFile[]): number {
  const last = files.at(-1);
  return last === undefined ? 0 : last.start + last.bytes;
}

/**
 * Decide where to write a chunk of a given size. Files are filled up to their size limit, and the oldest files are
 * removed first.
 */
export function planAppend(files: readonly OutputFile[], chunkBytes: number, rules: OutputRules): OutputStep {
  const { maxFileBytes, maxFiles } = rules;
  let kept: readonly OutputFile[] = files;
  const actions: OutputAction[] = [];
  for (let from = 0; from < chunkBytes; ) {
    const last = kept.at(-1);
    const room = last === undefined ? 0 : Math.max(0, maxFileBytes - last.bytes);
    if (last === undefined || room === 0) {
      kept = [...kept, { start: endOf(kept), bytes: 0 }];
      while (kept.length > maxFiles) {
        const [oldest, ...rest] = kept;
        if (oldest !== undefined) actions.push({ kind: "remove", start: oldest.start });
        kept = rest;
      }
      continue;
    }
    const to = Math.min(chunkBytes, from + room);
    actions.push({ kind: "append", start: last.start, from, to });
    kept = [...kept.slice(0, -1), { start: last.start, bytes: last.bytes + to - from }];
    from = to;
  }
  return { files: kept, actions };
}

/**
 * Decide what to read for an offset: the file that contains it, or the oldest file if that one is gone; null at the
 * end.
 */
export function planRead(
  files: readonly OutputFile[],
  offset: number,
  limitBytes: number,
): { readonly start: number; readonly position: number; readonly bytes: number } | null {
  const file = files.find(({ start, bytes }) => offset < start + bytes);
  if (file === undefined) return null;
  const position = Math.max(0, offset - file.start);
  return { start: file.start, position, bytes: Math.min(limitBytes, file.bytes - position) };
}
