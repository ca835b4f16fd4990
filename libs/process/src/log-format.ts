const HIDDEN = new Set(["time", "level", "msg", "err"]);

/**
 * Turn a JSON log line into one for people: time of day, level, message, fields as key=value, and an error's
 * stack on lines of its own. A line that is not JSON is left as it is.
 */
export function formatLogLine(line: string): string {
  const entry = parse(line);
  if (entry === null) return line;
  const time = typeof entry.time === "string" ? entry.time.slice(11, 23) : "";
  const level = String(entry.level ?? "")
    .toUpperCase()
    .padEnd(5);
  const fields = Object.entries(entry)
    .filter(([key]) => !HIDDEN.has(key))
    .map(([key, value]) => ` ${key}=${formatValue(value)}`)
    .join("");
  return `${time} ${level} ${String(entry.msg ?? "")}${fields}\n${formatError(entry.err)}`;
}

function parse(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch {
    // Not ours: shown as it came.
    return null;
  }
}

function formatValue(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return value;
  return JSON.stringify(value);
}

function formatError(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const text = "stack" in error ? String(error.stack) : JSON.stringify(error);
  return `${text.replaceAll(/^/gm, "    ")}\n`;
}
