import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  HealthQueryService,
  OutputStream,
  type ReadExecutionLogResponse,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { gapBefore, type OutputGap, type OutputPosition } from "@rollcall/domain";
import type { ControlPlane } from "../client/control-plane.ts";
import { keepWatching } from "../client/keep-watching.ts";
import type { Shell } from "../shell.ts";
import type { OutputWriter } from "./output-writer.ts";

/** One output, standard output or standard error. */
export type OneStream = typeof OutputStream.STDOUT | typeof OutputStream.STDERR;

/** The earliest time of the output to read: an age, or a wall time. */
export type Since = { readonly kind: "age"; readonly ms: number } | { readonly kind: "time"; readonly atMs: number };

/** Which part of an execution's output to read. */
export interface OutputWanted {
  readonly executionId: string;
  readonly follow: boolean;
  /** How many lines from the end of each output to read; 0 for all that is kept. */
  readonly tailLines: number;
  readonly since: Since | null;
  /** Whether to request the times at which the output was written. */
  readonly hasTimes: boolean;
}

/** Where an execution's output goes. */
export interface OutputTarget {
  /** Writers, keyed by stream. A stream that is not read is absent. */
  readonly writers: ReadonlyMap<OneStream, OutputWriter>;
  /** Called before the data after a gap is written. */
  readonly onGap: (stream: OneStream, gap: OutputGap & { readonly bytes: bigint }) => void;
  /** Called once if output is selected by time and its node does not know that time. */
  readonly onUnknownTime: () => void;
  /** Whether to wait if reading cannot start yet. */
  readonly isPatient: boolean;
  /**
   * Where an earlier reading stopped, keyed by stream. Updated while the output is read. Default: read from the start.
   */
  readonly positions?: Map<OneStream, OutputPosition>;
}

/** How much of an execution's output could not be read because it is no longer kept. */
export interface MissingOutput {
  /** Bytes before the first byte that was read. */
  readonly beginning: bigint;
  /** Bytes between parts that were read. */
  readonly between: bigint;
}

const NAMES = { [OutputStream.STDOUT]: "standard output", [OutputStream.STDERR]: "standard error" } as const;

/** Format a gap: "12,345,678 bytes of the standard output of execution ... are no longer kept". */
export function gapWords(executionId: string, stream: OneStream, gap: OutputGap & { readonly bytes: bigint }): string {
  const isOne = gap.bytes === 1n;
  const bytes = `${gap.bytes.toLocaleString("en-US")} ${isOne ? "byte" : "bytes"}`;
  const of = `of the ${NAMES[stream]} of execution ${executionId}`;
  return gap.kind === "beginning"
    ? `${bytes} ${of} before this ${isOne ? "is" : "are"} no longer kept`
    : `${bytes} ${of} ${isOne ? "is" : "are"} missing here: the node removed them before they were read`;
}

/** Write an execution's output to the writers until it ends. Throws Failure when it cannot be read. */
export async function readOutput(
  shell: Shell,
  control: ControlPlane,
  wanted: OutputWanted,
  target: OutputTarget,
): Promise<MissingOutput> {
  const { executionId } = wanted;
  const { writers, onGap, isPatient } = target;
  const missing = { beginning: 0n, between: 0n };
  const positions = target.positions ?? new Map<OneStream, OutputPosition>();
  for (const stream of writers.keys()) if (!positions.has(stream)) positions.set(stream, beginningOf(wanted));
  const client = control.client("health", HealthQueryService);
  const startMs = shell.wallMs();
  const pieces = keepWatching({
    ...{ control, shell, isPatient, at: "health", what: `read the output of execution ${executionId}` },
    // After a break, continue reading at the last position.
    open: (call) => client.readExecutionLog(requestOf(wanted, positions, shell.wallMs() - startMs), call),
  });
  let isTimeKnown = wanted.since === null;
  for await (const piece of pieces) {
    // Skip a message without output, which only shows that the stream is alive.
    if (piece.data.byteLength === 0) continue;
    const stream = streamOf(piece);
    const [writer, position] = [writers.get(stream), positions.get(stream)];
    if (writer === undefined || position === undefined) continue;
    if (!isTimeKnown && piece.times.length === 0) target.onUnknownTime();
    isTimeKnown = true;
    const gap = gapBefore(position, { offset: piece.offset, isCut: piece.cut });
    if (gap.kind !== "none") {
      missing[gap.kind] += gap.bytes;
      onGap(stream, gap);
    }
    positions.set(stream, { next: piece.offset + BigInt(piece.data.byteLength), hasBegun: true });
    writer.write(piece);
    // Read no faster than the writer can write.
    await writer.taken();
  }
  for (const writer of writers.values()) writer.end();
  return missing;
}

/**
 * The position at which to start. It is unknown until the first piece arrives, unless the output is read from its
 * beginning.
 */
function beginningOf({ tailLines, since }: OutputWanted): OutputPosition {
  return { next: tailLines > 0 || since !== null ? null : 0n, hasBegun: false };
}

function streamOf({ stream }: Pick<ReadExecutionLogResponse, "stream">): OneStream {
  return stream === OutputStream.STDERR ? OutputStream.STDERR : OutputStream.STDOUT;
}

function requestOf(wanted: OutputWanted, positions: ReadonlyMap<OneStream, OutputPosition>, passedMs: number) {
  const { executionId, follow, tailLines, since, hasTimes } = wanted;
  const [stdout, stderr] = [positions.get(OutputStream.STDOUT), positions.get(OutputStream.STDERR)];
  const isBoth = stdout !== undefined && stderr !== undefined;
  const one = stdout === undefined ? OutputStream.STDERR : OutputStream.STDOUT;
  const stream = isBoth ? OutputStream.UNSPECIFIED : one;
  const hasBegun = [...positions.values()].some((position) => position.hasBegun);
  const from = { offset: (stdout ?? stderr)?.next ?? 0n, stderrOffset: isBoth ? (stderr.next ?? 0n) : 0n };
  return {
    ...{ executionId, stream, follow, times: hasTimes || since !== null },
    ...from,
    // Ask for the last lines only before any output has been read.
    tailLines: hasBegun ? 0 : tailLines,
    ...(since?.kind === "age" && { sinceAge: durationFromMs(since.ms + passedMs) }),
    ...(since?.kind === "time" && { sinceTime: timestampFromMs(since.atMs) }),
  };
}
