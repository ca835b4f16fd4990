/**
 * Rows as RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe before it: machines choose
 * their names and labels, and an export must run nothing at who opens it.
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
