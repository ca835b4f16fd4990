/** The most recent output, up to about MOST_CHARACTERS: chunks of text, oldest first. */
export interface Output {
  readonly pieces: readonly string[];
  readonly characters: number;
  /** Number of characters dropped from the beginning. */
  readonly dropped: number;
}

/** The output before anything was written. */
export const NO_OUTPUT: Output = { pieces: [], characters: 0, dropped: 0 };

/** Maximum number of characters that a page keeps. */
export const MOST_CHARACTERS = 2 * 1024 * 1024;

/**
 * Number of characters up to which short chunks are joined, because a long list would be copied with each chunk.
 */
const FULL_PIECE = 64 * 1024;

/**
 * Append bytes. Invalid UTF-8 is replaced by a marker, and terminal control sequences are removed. `decoder` keeps
 * the first bytes of an incomplete character until the rest arrives; each output needs its own decoder.
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

/** The complete text of an output. */
export function outputText({ pieces }: Output): string {
  return pieces.join("");
}

/** Remove colors and cursor movements, which mean nothing on a page. */
function plain(text: string): string {
  const [first = "", ...sequences] = text.split(ESCAPE);
  const rest = sequences.map((part) => part.replace(/^\[[0-9;?]*[ -/]*[@-~]/, "").replace(/^\][^\p{Cc}]*/u, ""));
  return [first, ...rest]
    .join("")
    .replace(/\p{Cc}/gu, (control) => (control === "\n" || control === "\t" ? control : ""));
}

const ESCAPE = "\u001b";
