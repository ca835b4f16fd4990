import type { MessageInitShape } from "@bufbuild/protobuf";
import type { LogRequest, ServeLogsRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Clock } from "@rollcall/process";
import { beginOf } from "./output-begin.ts";
import type { OutputNumber, OutputSource } from "./output-source.ts";

/** A frame of the call HealthService.ServeLogs. */
export type OutputFrame = Omit<MessageInitShape<typeof ServeLogsRequestSchema>, "$typeName" | "$unknown">;

/** A call of HealthService.ServeLogs that sends output. */
export interface OutputCall {
  /** Send a piece. Resolves when the server accepts more, with false if the call has ended. */
  send(piece: OutputFrame): Promise<boolean>;
  /** End the call after everything has been sent. */
  end(): void;
}

/** The maximum number of bytes of output in one frame. */
const PIECE_BYTES = 65_536;
/** Time between two checks for more output. */
const SCAN_EVERY_MS = 250;
/**
 * The maximum number of characters of a failure message. Up to this number, the message fits its field in every
 * encoding.
 */
const MOST_MESSAGE = 160;

interface Cursor {
  readonly output: OutputNumber;
  offset: bigint;
  isCut: boolean;
  isEnd: boolean;
}

export interface SendServices {
  readonly source: OutputSource;
  readonly clock: Pick<Clock, "sleep" | "wallMs">;
}

/**
 * Send the output that a LogRequest requests, up to its end. With `follow`, continue until the execution has ended
 * or the server ends the call. If both outputs are requested, their pieces alternate.
 */
export async function sendOutput(
  request: LogRequest,
  services: SendServices,
  call: OutputCall,
  signal: AbortSignal,
): Promise<void> {
  if (!(await call.send({ token: request.token }))) return;
  try {
    const cursors = await cursorsOf(request, services);
    const isKept = cursors !== null && (await sendPieces(request, cursors, services, call, signal));
    if (!isKept) await call.send({ failure: "LOG_NOT_FOUND" });
  } catch (error) {
    if (!signal.aborted) await call.send({ failure: "LOG_UNAVAILABLE", failureMessage: messageOf(error) });
    throw error;
  } finally {
    call.end();
  }
}

/** Refuse a LogRequest because too many others are in progress. */
export async function refuseOutput({ token }: LogRequest, most: number, call: OutputCall): Promise<void> {
  const failureMessage = `its agent sends at most ${most} outputs at a time`;
  await call.send({ token, failure: "TOO_MANY_STREAMS", failureMessage });
  call.end();
}

async function cursorsOf(request: LogRequest, { source, clock }: SendServices): Promise<readonly Cursor[] | null> {
  const { executionId, stream } = request;
  const outputs: readonly OutputNumber[] = stream === 1 || stream === 2 ? [stream] : [1, 2];
  const cursors: Cursor[] = [];
  for (const output of outputs) {
    const begin = await beginOf(source, { executionId, output }, request, clock.wallMs());
    if (begin === null) return null;
    cursors.push({ output, ...begin, isEnd: false });
  }
  return cursors;
}

/** Send all pieces. Returns false if no output is kept any longer. */
async function sendPieces(
  { executionId, follow, times }: LogRequest,
  cursors: readonly Cursor[],
  { source, clock }: SendServices,
  call: OutputCall,
  signal: AbortSignal,
): Promise<boolean> {
  while (cursors.some(({ isEnd }) => !isEnd)) {
    let hasSent = false;
    for (const cursor of cursors) {
      if (cursor.isEnd) continue;
      const from = { offset: cursor.offset };
      const piece = await source.read(executionId, cursor.output, from, { limitBytes: PIECE_BYTES, times });
      if (piece === null) return false;
      const { data, offset } = piece;
      const cut = cursor.isCut || piece.isCut;
      cursor.offset = offset + BigInt(data.byteLength);
      cursor.isEnd = piece.isEnd || (!follow && data.byteLength === 0);
      if (data.byteLength === 0) continue;
      cursor.isCut = false;
      hasSent = true;
      if (!(await call.send({ stream: cursor.output, offset, data, cut, times: [...piece.times] }))) return true;
    }
    if (!hasSent && cursors.some(({ isEnd }) => !isEnd)) await clock.sleep(SCAN_EVERY_MS, signal);
  }
  return true;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MOST_MESSAGE);
}
