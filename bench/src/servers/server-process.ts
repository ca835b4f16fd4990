import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { extname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cpuSecondsOf, residentBytesOf } from "./process-cpu.ts";

/** What a server holds after its garbage is collected. */
export interface MemoryProbeAnswer {
  readonly rssBytes: number;
  /** JavaScript heap in use, and what it holds outside itself (buffers, HTTP/2 sessions). */
  readonly heapBytes: number;
}

/** What to start, and how to know that it serves. */
export interface ServerCommand {
  /** Path of an entry point. Node.js gets SERVER_FLAGS, and the flags that this process has. */
  readonly program: string;
  /** Whether the program is a binary, which answers for its memory on the same channel by itself. */
  readonly isBinary?: boolean;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Serves when this port takes connections. */
  readonly port: number;
  /** Receives its output: a log is part of a service, but need not be shown. */
  readonly logFile: string;
}

/** A server to be measured, and the port of its agents' streams or of its API. */
export interface Candidate {
  readonly server: ServerProcess;
  readonly port: number;
}

/** As packages and pods start the control plane; the servers beside it have them, too. */
export const SERVER_FLAGS: readonly string[] = ["--max-semi-space-size=32"];

const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 20_000;

/** A server under measurement, in a process of its own. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #logFile: string;

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child;
    this.#logFile = logFile;
  }

  /** Starts a server and waits until it takes connections. What it printed is shown only when it does not. */
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

  /** Sends a signal: SIGSTOP and SIGCONT for what comes between, SIGKILL for an end without a word. */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** What it printed last, when it has ended by itself; null while it runs. */
  get lastWords(): string | null {
    if (this.#child.exitCode === null && this.#child.signalCode === null) return null;
    return readFileSync(this.#logFile, "utf8").slice(-4_000);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** CPU seconds that the process has used since it began, from the kernel's own books. Linux only. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.#child.pid ?? 0);
  }

  /** Resident memory of the process, as it is. Linux only. */
  residentBytes(): number {
    return residentBytesOf(this.#child.pid ?? 0);
  }

  /** Collects the server's garbage and answers what is left. */
  async memory(): Promise<MemoryProbeAnswer> {
    this.#child.send("memory");
    const [answer] = (await once(this.#child, "message")) as [MemoryProbeAnswer];
    return answer;
  }

  /** Ends the server; kills it when it takes too long. */
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
