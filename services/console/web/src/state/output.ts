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

/** Add bytes. What is not UTF-8 is shown by a mark; control sequences of terminals are taken out. */
export function addOutput(output: Output, bytes: Uint8Array): Output {
  const text = plain(new TextDecoder().decode(bytes));
  const pieces = [...output.pieces, text];
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
