// Other control characters have no place in a table; line breaks and tabs may stand inside quotes.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a terminal.
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** One record of RFC 4180, with its line break (CRLF). Fields with commas, quotes or line breaks are quoted. */
export function csvRecord(fields: readonly string[]): string {
  return `${fields.map(csvField).join(",")}\r\n`;
}

function csvField(field: string): string {
  const safe = field.replaceAll(CONTROLS, "\ufffd");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
