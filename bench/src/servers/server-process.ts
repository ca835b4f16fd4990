import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { extname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cpuSecondsOf, residentBytesOf } from "./process-cpu.ts";

/** The memory of a server after a garbage collection. */
export interface MemoryProbeAnswer {
  readonly rssBytes: number;
  /** JavaScript heap in use, and external memory (buffers, HTTP/2 sessions). */
  readonly heapBytes: number;
}

/** How to start a server, and the port that shows that it serves. */
export interface ServerCommand {
  /** The path of an entry point. Node.js gets SERVER_FLAGS and the flags of this process. */
  readonly program: string;
  /** Whether the program is a binary. A binary reports its memory itself, on the same channel. */
  readonly isBinary?: boolean;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The port that accepts connections when the server is ready. */
  readonly port: number;
  /**
   * The file that receives the server's output. Logging is part of the cost of a service, but need not
   * be shown.
   */
  readonly logFile: string;
}

/** A server to measure, and the port of its agents' streams or of its API. */
export interface Candidate {
  readonly server: ServerProcess;
  readonly port: number;
}

/**
 * The flags that packages and pods set for the control plane. The servers that Rollcall is compared
 * with get them, too.
 */
export const SERVER_FLAGS: readonly string[] = ["--max-semi-space-size=32"];

const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 20_000;

/** A server under measurement, in a separate process. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #logFile: string;

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child;
    this.#logFile = logFile;
  }

  /**
   * Starts a server and waits until it accepts connections. Shows the server's output only if that
   * fails.
   */
  static async start(command: ServerCommand): Promise<ServerProcess> {
    const log = openSync(command.logFile, "w");
    const [program, ...args] = commandLine(command);
    const child = spawn(program, args, {
      cwd: fileURLToPath(new URL("../../..", import.meta.url)),
      stdio: ["ignore", log, log, "ipc"],
      env: { ...process.env, ...command.env },
    });
    closeSync(log);
    const server = new ServerProcess(child, command.logFile);
    const limit = performance.now() + START_LIMIT_MS;
    while (!(await takesConnections(command.port))) {
      if (child.exitCode !== null || performance.now() > limit) {
        await server.stop();
        const printed = readFileSync(command.logFile, "utf8").slice(-4_000);
        throw new Error(`${command.program} did not start:\n${printed}`);
      }
      await delay(50);
    }
    return server;
  }

  /**
   * Sends a signal. SIGSTOP and SIGCONT pause and resume the server, and SIGKILL kills it as in a
   * crash.
   */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** The last lines that the server printed if it has exited unexpectedly; null while it runs. */
  get lastWords(): string | null {
    if (this.#child.exitCode === null && this.#child.signalCode === null) return null;
    return readFileSync(this.#logFile, "utf8").slice(-4_000);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /**
   * The CPU seconds that the process has used since it started, according to the kernel. Linux only.
   */
  cpuSeconds(): number {
    return cpuSecondsOf(this.#child.pid ?? 0);
  }

  /** The current resident memory of the process in bytes. Linux only. */
  residentBytes(): number {
    return residentBytesOf(this.#child.pid ?? 0);
  }

  /** Collects the server's garbage and returns the memory in use. */
  async memory(): Promise<MemoryProbeAnswer> {
    this.#child.send("memory");
    const [answer] = (await once(this.#child, "message")) as [MemoryProbeAnswer];
    return answer;
  }

  /** Stops the server. Kills it if that takes too long. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    const killer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_LIMIT_MS);
    await exit;
    clearTimeout(killer);
  }
}

function commandLine({ program, args, isBinary }: ServerCommand): readonly [string, ...string[]] {
  if (isBinary === true) return [program, ...args];
  const probe = new URL(`./memory-probe${extname(import.meta.url)}`, import.meta.url);
  const flags = [...SERVER_FLAGS, ...process.execArgv, "--expose-gc", "--import", probe.href];
  return [process.execPath, ...flags, program, ...args];
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
