import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { LogRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type LineSearch, searchLines, searchPiece } from "@rollcall/domain";
import type { OutputNumber, OutputSource } from "./output-source.ts";

/** Where to start sending output. */
export interface OutputBegin {
  readonly offset: bigint;
  /** Whether the beginning of the requested output is no longer kept. */
  readonly isCut: boolean;
}

/** One output of an execution. */
export interface OneOutput {
  readonly executionId: string;
  readonly output: OutputNumber;
}

const PIECE_BYTES = 65_536n;
/** How far back to search for the beginning of a line. A longer line is shown from the middle. */
const MOST_LINE_BYTES = PIECE_BYTES;

/** Where to start: at the latest of the positions in the request. Null if none of the output is kept. */
export async function beginOf(
  source: OutputSource,
  of: OneOutput,
  request: LogRequest,
  wallMs: number,
): Promise<OutputBegin | null> {
  const { offset, stderrOffset, stream, tailBytes, tailLines } = request;
  let begin: OutputBegin = { offset: of.output === 2 && stream === 0 ? stderrOffset : offset, isCut: false };
  const sinceMs = sinceOf(request, wallMs);
  const places = [
    ...(tailBytes > 0n ? [() => placed(source, of, { tailBytes })] : []),
    ...(sinceMs === null ? [] : [() => lineOf(source, of, { sinceMs })]),
    ...(tailLines > 0 ? [() => lastLines(source, of, tailLines)] : []),
  ];
  for (const place of places) {
    const found = await place();
    if (found === null) return null;
    // Use the latest starting point. Output before that point was not requested, so it is not missing.
    if (found.offset > begin.offset) begin = found;
  }
  return begin;
}

/** The wall time of this machine when the requested output begins; null for all output. */
function sinceOf({ sinceTime, sinceAge }: LogRequest, wallMs: number): bigint | null {
  const times = [
    ...(sinceTime === undefined ? [] : [timestampMs(sinceTime)]),
    ...(sinceAge === undefined ? [] : [wallMs - durationMs(sinceAge)]),
  ];
  // Never pass 0, which the keeper treats as unset.
  return times.length === 0 ? null : BigInt(Math.max(1, Math.trunc(Math.max(...times))));
}

async function placed(
  source: OutputSource,
  { executionId, output }: OneOutput,
  from: Parameters<OutputSource["read"]>[2],
): Promise<OutputBegin | null> {
  const piece = await source.read(executionId, output, from, { limitBytes: 1 });
  return piece === null ? null : { offset: piece.offset, isCut: piece.isCut };
}

/** The beginning of the line at a position. */
async function lineOf(
  source: OutputSource,
  of: OneOutput,
  from: Parameters<OutputSource["read"]>[2],
): Promise<OutputBegin | null> {
  const found = await placed(source, of, from);
  if (found === null || found.offset === 0n || found.isCut) return found;
  const low = found.offset > MOST_LINE_BYTES ? found.offset - MOST_LINE_BYTES : 0n;
  const before = await readBetween(source, of, low, found.offset);
  if (before === null) return null;
  const at = before.data.lastIndexOf(LINE_BREAK);
  if (at >= 0) return { offset: before.offset + BigInt(at + 1), isCut: false };
  return before.offset === 0n ? { offset: 0n, isCut: false } : found;
}

const LINE_BREAK = 0x0a;

/** The beginning of the last N lines, searched backwards so that only those lines are read. */
async function lastLines(source: OutputSource, of: OneOutput, lines: number): Promise<OutputBegin | null> {
  const { executionId, output } = of;
  const last = await source.read(executionId, output, { tailBytes: 1n }, { limitBytes: 1 });
  if (last === null) return null;
  let search: LineSearch = searchLines(lines);
  for (let end = last.offset + BigInt(last.data.byteLength); end > 0n; ) {
    const low = end > PIECE_BYTES ? end - PIECE_BYTES : 0n;
    const piece = await readBetween(source, of, low, end);
    if (piece === null) return null;
    const found = searchPiece(search, piece.data);
    if (found.begin !== null) return { offset: piece.offset + BigInt(found.begin), isCut: false };
    // Start at the beginning of the piece, because earlier lines are no longer kept.
    if (piece.offset > low) return { offset: piece.offset, isCut: true };
    search = found.next;
    end = low;
  }
  return { offset: 0n, isCut: false };
}

/** Read the part of an output that is still kept. If its beginning is gone, the result starts later. */
async function readBetween(
  source: OutputSource,
  { executionId, output }: OneOutput,
  from: bigint,
  to: bigint,
): Promise<{ readonly offset: bigint; readonly data: Uint8Array } | null> {
  const parts: Uint8Array[] = [];
  let begin = from;
  for (let at = from; at < to; ) {
    const piece = await source.read(executionId, output, { offset: at }, { limitBytes: Number(to - at) });
    if (piece === null) return null;
    const { offset } = piece;
    if (piece.data.byteLength === 0 || offset >= to) return { offset: to, data: new Uint8Array() };
    if (offset > at) {
      // Drop the parts read so far, because rotation removes the oldest output first, so they are gone as
      // well.
      parts.length = 0;
      begin = offset;
    }
    const data = piece.data.subarray(0, Number(to - offset));
    parts.push(data);
    at = offset + BigInt(data.byteLength);
  }
  return { offset: begin, data: Buffer.concat(parts) };
}
