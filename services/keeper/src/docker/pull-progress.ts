import type { Readable } from "node:stream";

/** One line of an engine's output during a pull. */
interface PullLine {
  readonly error?: unknown;
  readonly id?: unknown;
  readonly status?: unknown;
  readonly progressDetail?: { readonly current?: unknown; readonly total?: unknown } | null;
}

const MIB = 1_048_576;
const MOST_LAYERS = 1_000;
const MOST_LINE = 65_536;

/**
 * Read an engine's output during a pull and yield the progress as text to append. Throws the error that the
 * engine reports.
 */
export async function* progressOf(stream: Readable): AsyncGenerator<string> {
  const layers = new Map<string, { readonly current: number; readonly total: number }>();
  for await (const text of linesOf(stream)) {
    const line = parseLine(text);
    if (line === null) continue;
    if (typeof line.error === "string") throw new Error(line.error);
    const { id, progressDetail, status } = line;
    const { current, total } = progressDetail ?? {};
    // Count only "Downloading", because "Extracting" counts the same bytes again.
    if (status !== "Downloading" || typeof id !== "string" || layers.size >= MOST_LAYERS) continue;
    if (typeof current !== "number" || typeof total !== "number") continue;
    layers.set(id, { current, total });
    const sum = [...layers.values()].reduce(
      (before, layer) => ({ current: before.current + layer.current, total: before.total + layer.total }),
      { current: 0, total: 0 },
    );
    yield `: ${Math.floor(sum.current / MIB)} of ${Math.ceil(sum.total / MIB)} MiB`;
  }
}

async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = (lines.pop() ?? "").slice(0, MOST_LINE);
    yield* lines;
  }
  yield rest;
}

function parseLine(text: string): PullLine | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}
