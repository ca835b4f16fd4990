/**
 * Format rows as RFC 4180. A value that a spreadsheet would read as a formula gets an apostrophe in front,
 * because machines choose their names and labels, and opening an export must not run anything.
 */
export function toCsv(header: readonly string[], rows: Iterable<readonly (string | number)[]>): string {
  const lines = [header.map(field).join(",")];
  for (const row of rows) lines.push(row.map(field).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = /(?:^|[;\t])[\s\p{Cc}]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r]/u.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}
