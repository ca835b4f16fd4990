import { execFile, spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type RecordedOperation, toLines } from "./history.ts";

const SOURCES = fileURLToPath(new URL("../../../histories-check", import.meta.url));
/** The time limit for the build, which downloads porcupine the first time. */
const BUILD_LIMIT_MS = 300_000;

/** The checker's result for one node. */
export interface NodeReport {
  readonly node: string;
  readonly operations: number;
  /** The number of operations whose outcome is unknown. */
  readonly open: number;
  /** UNKNOWN if the check took too long. */
  readonly result: "OK" | "ILLEGAL" | "UNKNOWN";
  /** A short part of the history that no order of its operations explains. */
  readonly minimal?: readonly RecordedOperation[];
}

/** Build the checker. */
export async function buildChecker(program: string): Promise<void> {
  await promisify(execFile)("go", ["build", "-o", program, "."], { cwd: SOURCES, timeout: BUILD_LIMIT_MS });
}

/** Check the histories of all nodes. Returns a report for each. */
export async function checkHistories(
  program: string,
  operations: readonly RecordedOperation[],
): Promise<readonly NodeReport[]> {
  const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  // Ignore a broken pipe: the checker prints why it stopped reading, and its exit code reports the failure.
  child.stdin.on("error", () => {}).end(toLines(operations));
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("exit", resolve);
  });
  const [output, code] = await Promise.all([text(child.stdout), exit]);
  if (code !== 0) throw new Error(`the checker exited with ${code}`);
  return output
    .split("\n")
    .filter((line) => line !== "")
    .map((line): NodeReport => JSON.parse(line));
}

/** The operation as a line for people. */
export function describeOperation({ client, operation, value, callUs, ...rest }: RecordedOperation): string {
  const { returnUs, refusal, seen } = rest;
  const times = `${milliseconds(callUs)} to ${returnUs === null ? "?" : milliseconds(returnUs)}`;
  const answer = returnUs === null ? "unknown" : (refusal ?? (seen === undefined ? "done" : JSON.stringify(seen)));
  return `client ${client}, ${times} ms: ${operation}${value === undefined ? "" : ` ${value}`} -> ${answer}`;
}

function milliseconds(us: number): string {
  return (us / 1_000).toFixed(3);
}
