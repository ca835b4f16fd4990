const ASCII = /^[\x20-\x7e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: matching the escape sequences is what this is for.
const STYLES = /\u001b\[[0-9;]*m/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a terminal.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const ZERO_WIDTH = /^(?:\p{Mn}|\p{Me}|\p{Cf})$/u;

/** First and last code points of the blocks that terminals draw two columns wide, in order. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1faff],
  [0x20000, 0x3fffd],
];

/**
 * Make text that came from elsewhere safe to print: a node's host name, a label or somebody's reason must not be able
 * to move the cursor, colour the screen or turn the line around. Line breaks become spaces.
 */
export function printable(text: string): string {
  return ASCII.test(text) ? text : text.replaceAll(/\r?\n/g, " ").replaceAll("\t", " ").replaceAll(CONTROLS, "\ufffd");
}

/** How many columns a terminal needs for the text; colours take none. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const character of text.replaceAll(STYLES, "")) width += characterWidth(character);
  return width;
}

/** Shorten text to so many columns, the last of them an ellipsis. Text that fits stays as it is. */
export function truncate(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Fill text with spaces to so many columns. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - textWidth(text)));
}

function characterWidth(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (ZERO_WIDTH.test(character)) return 0;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}
