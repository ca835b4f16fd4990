import { setTimeout as sleep } from "node:timers/promises";
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
  /** Whether the times at which it was written are wanted. */
  readonly hasTimes: boolean;
}

/** Where an execution's output goes. */
export interface OutputTarget {
  /** By output; those that are not wanted are absent. */
  readonly writers: ReadonlyMap<OneStream, OutputWriter>;
  /** Called before what follows a gap is written. */
  readonly onGap: (stream: OneStream, gap: OutputGap & { readonly bytes: bigint }) => void;
  /** Called once when output was asked for by its time, and its node does not know that time. */
  readonly onUnknownTime: () => void;
  /** Whether to wait when reading cannot begin at the moment. */
  readonly isPatient: boolean;
}

/** How much of an execution's output could not be read because it is no longer kept. */
export interface MissingOutput {
  /** Bytes before what was read first. */
  readonly beginning: bigint;
  /** Bytes between what was read. */
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
    : `${bytes} ${of} ${isOne ? "is" : "are"} missing here: removed on its node before they were read`;
}

/** Write an execution's output to its writers, to its end. Throws Failure when it cannot be read. */
export async function readOutput(
  shell: Shell,
  control: ControlPlane,
  wanted: OutputWanted,
  target: OutputTarget,
): Promise<MissingOutput> {
  const { executionId } = wanted;
  const { writers, onGap, isPatient } = target;
  const missing = { beginning: 0n, between: 0n };
  const positions = new Map([...writers.keys()].map((stream) => [stream, beginningOf(wanted)]));
  const client = control.client("health", HealthQueryService);
  const startMs = shell.wallMs();
  const pieces = keepWatching({
    ...{ control, shell, isPatient, at: "health", what: `read the output of execution ${executionId}` },
    // After a break it continues from where it was.
    open: (call) => client.readExecutionLog(requestOf(wanted, positions, shell.wallMs() - startMs), call),
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
  });
  let isTimeKnown = wanted.since === null;
  for await (const piece of pieces) {
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
    // Read no faster than the writer takes it.
    await writer.taken();
  }
  for (const writer of writers.values()) writer.end();
  return missing;
}

/** Where to begin. Unknown until the first piece if the output is not read from its start. */
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
    // An output without a first piece by then had no lines.
    tailLines: hasBegun ? 0 : tailLines,
    ...(since?.kind === "age" && { sinceAge: durationFromMs(since.ms + passedMs) }),
    ...(since?.kind === "time" && { sinceTime: timestampFromMs(since.atMs) }),
  };
}
