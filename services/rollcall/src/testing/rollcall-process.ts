import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "@rollcall/testkit/time";
import { bundledMain } from "./bundled-main.ts";

/** One line of a process's log. */
export interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

const MAIN = await bundledMain();
const LAUNCHER = fileURLToPath(new URL("../../../../bin/rollcall", import.meta.url));
const NPM_PROGRAM = join(dirname(LAUNCHER), "../deploy/package/rollcall.cjs");

/** Returned instead of a line when no further line can arrive. */
const ENDED = { msg: "" } as const satisfies LogLine;

/**
 * How long to wait for a process. A start takes a second on an idle machine, and a minute on one with many more busy
 * processes than cores.
 */
const PATIENCE_MS = 120_000;

const running = new Set<RollcallProcess>();
/** Child processes of the running processes, found in the log lines that report them. */
const descendants = new Set<number>();

/** A real `rollcall` process. */
export class RollcallProcess {
  readonly #child: ChildProcess;
  readonly #lines: LogLine[] = [];
  #out = "";
  #err = "";
  #rest = "";

  /**
   * @param openFiles The limit of open files, as `ulimit -n` sets it.
   * @param main Another release's program.
   */
  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}, openFiles?: number, main = MAIN) {
    const words = [process.execPath, main, ...args];
    const limited = ["/bin/sh", "-c", `ulimit -n ${openFiles}; exec "$@"`, "sh", ...words];
    const [program = "", ...rest] = openFiles === undefined ? words : limited;
    this.#child = spawn(program, rest, {
      env: { ...cleanEnvironment(), ...env },
      stdio: ["ignore", "pipe", "pipe"],
      // Start a separate process group, so that a test can end it without ending itself.
      detached: true,
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#err += text;
    });
    running.add(this);
    this.#child.once("exit", () => running.delete(this));
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Everything written to standard output. */
  get out(): string {
    return this.#out;
  }

  get err(): string {
    return this.#err;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Stop reading the process's output, so that every later line causes a write error. */
  closeOutput(): void {
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
  }

  /** Wait for the process to end. Returns the exit code, or the signal that ended it. */
  async exit(): Promise<number | string> {
    return until(
      `the end of process ${this.pid}\n${this.#out}${this.#err}`,
      () => {
        const { exitCode, signalCode } = this.#child;
        // Wrap the result in an array, because code 0 is also a result.
        return exitCode === null && signalCode === null ? null : [exitCode ?? signalCode ?? 0];
      },
      PATIENCE_MS,
    ).then(([end]) => end ?? 0);
  }

  /** Send a signal to the process, and wait until it has ended. */
  async killed(signal: NodeJS.Signals = "SIGKILL"): Promise<number | string> {
    this.kill(signal);
    return this.exit();
  }

  /**
   * Wait for a log line with this message, skipping the first `skip` such lines. Rejects immediately when the
   * process ends without writing it.
   */
  async logged(msg: string, fields: Readonly<Record<string, unknown>> = {}, skip = 0): Promise<LogLine> {
    const find = () => this.#lines.filter((line) => isLine(line, msg, fields))[skip];
    const said = await until(`"${msg}"`, () => find() ?? (this.#hasEnded() ? ENDED : null), PATIENCE_MS).catch(
      () => ENDED,
    );
    const line = said === ENDED ? find() : said;
    if (line !== undefined) return line;
    throw new Error(`process ${this.pid} did not say "${msg}":\n${this.#out}${this.#err}`);
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #read(text: string): void {
    this.#out += text;
    const parts = (this.#rest + text).split("\n");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) {
      const line = parseLine(part);
      if (line === null) continue;
      this.#lines.push(line);
      const started = line.msg === "local agent started" || line.msg === "postgres started";
      if (started && typeof line.pid === "number") descendants.add(line.pid);
    }
  }
}

/** How a process with redirected standard output ended. */
export interface RedirectedEnd {
  readonly code: number | string;
  readonly err: string;
}

/** How to run a process. */
export interface Redirection {
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs the process, for example as another user. */
  readonly within?: readonly string[];
  /** The launcher that starts the process, see builtLauncher(); Node.js when absent. */
  readonly launcher?: string;
}

/** Create a built checkout in a folder. Returns its `bin/rollcall`. */
export function builtLauncher(folder: string): string {
  const launcher = join(folder, "bin/rollcall");
  const links = [
    [join(folder, "node_modules/.bin/node"), process.execPath],
    [join(folder, "services/rollcall/bundle"), join(MAIN, "../..")],
  ] as const;
  for (const path of [launcher, ...links.map(([link]) => link)]) mkdirSync(dirname(path), { recursive: true });
  copyFileSync(LAUNCHER, launcher);
  for (const [link, target] of links) symlinkSync(target, link);
  return launcher;
}

/**
 * Lay out the npm package in a folder as npm installs it. Returns the link to its program, in the directory of
 * Node.js.
 */
export function npmLauncher(folder: string): string {
  const launcher = join(folder, "bin/rollcall");
  const program = join(folder, "lib/rollcall/bin/rollcall.cjs");
  for (const path of [launcher, program]) mkdirSync(dirname(path), { recursive: true });
  copyFileSync(NPM_PROGRAM, program);
  chmodSync(program, 0o755);
  symlinkSync(dirname(MAIN), join(folder, "lib/rollcall/src"));
  symlinkSync(program, launcher);
  symlinkSync(process.execPath, join(folder, "bin/node"));
  return launcher;
}

/** Run one of our processes to completion. Its standard output is a file, a device, or a pipe without a reader. */
export async function runInto(
  out: number | "closed pipe",
  args: readonly string[],
  { env = {}, within = [], launcher }: Redirection = {},
): Promise<RedirectedEnd> {
  const own = launcher === undefined ? [process.execPath, MAIN] : [launcher];
  const [program = "", ...rest] = [...within, ...own, ...args];
  const child = spawn(program, rest, {
    env: { ...cleanEnvironment(), ...env },
    stdio: ["ignore", out === "closed pipe" ? "pipe" : out, "pipe"],
  });
  child.stdout?.destroy();
  let err = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const [code, signal]: (number | string | null)[] = await once(child, "close");
  return { code: code ?? signal ?? "unknown", err };
}

/** End all processes that tests left behind. */
export async function endAll(): Promise<void> {
  for (const process of running) process.kill("SIGKILL");
  for (const pid of descendants) endProcess(pid);
  descendants.clear();
  await until("the end of all processes", () => running.size === 0);
}

/** Send a signal to a process that may be gone. */
export function endProcess(pid: number, signal: NodeJS.Signals = "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Ignore the error, because the process has already ended.
  }
}

function isLine(line: LogLine, msg: string, fields: Readonly<Record<string, unknown>>): boolean {
  return line.msg === msg && Object.entries(fields).every(([key, value]) => line[key] === value);
}

function parseLine(text: string): LogLine | null {
  try {
    const value: unknown = JSON.parse(text);
    const isLine = typeof value === "object" && value !== null && "msg" in value;
    return isLine ? (value as LogLine) : null;
  } catch {
    // Return null for a line that is not a log line.
    return null;
  }
}

/** The environment for the processes, without settings of the user who runs the tests. */
function cleanEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("ROLLCALL_") && name !== "DATABASE_URL" && name !== "NODE_OPTIONS",
  );
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""]));
}
