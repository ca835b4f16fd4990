const HIDDEN = new Set(["time", "level", "msg", "err", "process"]);

/** ANSI codes of the levels. */
const LEVEL_CODES: Readonly<Record<string, string>> = {
  trace: "2",
  debug: "2",
  info: "32",
  warn: "33",
  error: "31",
  fatal: "1;31",
};
const DIM = "2";
const PROCESS_WIDTH = 6;

/**
 * Format a JSON log line for people: local time of day, level, process, message, and fields as key=value. For a
 * warning or an error of the operating system, only the messages are shown, because these conditions are expected.
 * Other errors follow with their stacks on separate lines. Returns lines that are not JSON unchanged.
 */
export function formatLogLine(line: string, hasColours = false): string {
  const entry = parse(line);
  if (entry === null) return line;
  const paint = (code: string, text: string) => (hasColours && text !== "" ? `\u001b[${code}m${text}\u001b[0m` : text);
  const time = typeof entry.time === "string" ? timeOfDay(new Date(entry.time)) : "";
  const level = String(entry.level ?? "");
  const process = typeof entry.process === "string" ? `${entry.process.padEnd(PROCESS_WIDTH)} ` : "";
  const fields = Object.entries(entry)
    .filter(([key]) => !HIDDEN.has(key))
    .map(([key, value]) => ` ${key}=${formatValue(value)}`)
    .join("");
  const head = `${paint(DIM, time)} ${paint(LEVEL_CODES[level] ?? "0", level.toUpperCase().padEnd(5))} `;
  const reason = isExpected(level, entry.err) ? `: ${messagesOf(entry.err)}` : "";
  const stack = reason === "" ? formatStack(entry.err) : "";
  return `${head}${paint(DIM, process)}${String(entry.msg ?? "")}${reason}${paint(DIM, fields)}\n${stack}`;
}

function parse(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch {
    // Return null, so that a line in any other format is shown unchanged.
    return null;
  }
}

/** For example "09:05:59", in the time zone of the machine. */
function timeOfDay(time: Date): string {
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map((it) => String(it).padStart(2, "0")).join(":");
}

function formatValue(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return value;
  return JSON.stringify(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function isExpected(level: string, error: unknown): boolean {
  if (!isObject(error) || typeof error.message !== "string") return false;
  return level === "warn" || (typeof error.code === "string" && /^E[A-Z]+$/.test(error.code));
}

/** The message of an error and those of its causes. */
function messagesOf(error: unknown): string {
  if (!isObject(error)) return "";
  const cause = messagesOf(error.cause);
  return cause === "" ? String(error.message) : `${error.message}: ${cause}`;
}

function formatStack(error: unknown): string {
  if (!isObject(error)) return "";
  const text = "stack" in error ? String(error.stack) : JSON.stringify(error);
  return `${text.replaceAll(/^/gm, "    ")}\n`;
}
