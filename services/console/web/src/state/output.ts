/** What was written, up to a bound: pieces of text, the oldest first. */
export interface Output {
  readonly pieces: readonly string[];
  readonly characters: number;
  /** Characters that were dropped from the beginning. */
  readonly dropped: number;
}

/** Before anything was written. */
export const NO_OUTPUT: Output = { pieces: [], characters: 0, dropped: 0 };

/** Most characters that a page keeps. */
export const MOST_CHARACTERS = 2 * 1024 * 1024;

/** Pieces are filled up to a number of characters: an output of many short ones would be copied with each. */
const FULL_PIECE = 64 * 1024;

/**
 * Add bytes. What is not UTF-8 is shown by a mark; control sequences of terminals are taken out. `decoder` keeps the
 * first bytes of a character whose others come later; it is the one of this output alone.
 */
export function addOutput(output: Output, bytes: Uint8Array, decoder?: InstanceType<typeof TextDecoder>): Output {
  const text = plain(decoder?.decode(bytes, { stream: true }) ?? new TextDecoder().decode(bytes));
  const last = output.pieces.at(-1);
  const isShort = last !== undefined && last.length + text.length <= FULL_PIECE;
  const pieces = isShort ? [...output.pieces.slice(0, -1), last + text] : [...output.pieces, text];
  let { characters, dropped } = output;
  characters += text.length;
  while (characters > MOST_CHARACTERS && pieces.length > 1) {
    const first = pieces.shift() ?? "";
    characters -= first.length;
    dropped += first.length;
  }
  return { pieces, characters, dropped };
}

/** All of it. */
export function outputText({ pieces }: Output): string {
  return pieces.join("");
}

/** Without colours and movements of a cursor, which mean nothing here. */
function plain(text: string): string {
  const [first = "", ...sequences] = text.split(ESCAPE);
  const rest = sequences.map((part) => part.replace(/^\[[0-9;?]*[ -/]*[@-~]/, "").replace(/^\][^\p{Cc}]*/u, ""));
  return [first, ...rest]
    .join("")
    .replace(/\p{Cc}/gu, (control) => (control === "\n" || control === "\t" ? control : ""));
}

const ESCAPE = "\u001b";
