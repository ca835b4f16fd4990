import type { Sink } from "../shell.ts";

/** A sink that keeps what is written to it. */
export interface RecordingSink extends Sink {
  /** Everything that was written. */
  text(): string;
}

/**
 * Create a sink that records what is written to it. The text must fit the terminal of the
 * sink `like`.
 */
export function recordingSink(like: Sink): RecordingSink {
  const parts: string[] = [];
  const decoder = new TextDecoder();
  return {
    write: (data) => {
      parts.push(typeof data === "string" ? data : decoder.decode(data, { stream: true }));
    },
    taken: async () => {},
    finish: async () => {},
    isTerminal: like.isTerminal,
    columns: () => like.columns(),
    rows: () => like.rows(),
    text: () => parts.join(""),
  };
}
