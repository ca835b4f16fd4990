import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, lstatSync, openSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const STOP_LIMIT_MS = 15_000;

/** An agent's program, as the scenarios start it. */
export interface Candidate {
  readonly name: string;
  /**
   * The program and its first arguments. The runner appends --server, --name, --state-dir and
   * --clock-file.
   */
  readonly command: readonly string[];
}

/** The processes of one scenario's agent. */
export class AgentProcess {
  readonly #candidate: Candidate;
  readonly #folder: string;
  readonly #server: string;
  readonly #onExit: (code: number | null) => void;
  #children: ChildProcess[] = [];

  constructor(options: {
    readonly candidate: Candidate;
    readonly folder: string;
    readonly server: string;
    /** Called when a process has ended, for any reason. */
    readonly onExit: (code: number | null) => void;
  }) {
    this.#candidate = options.candidate;
    this.#folder = options.folder;
    this.#server = options.server;
    this.#onExit = options.onExit;
  }

  start(): void {
    this.#start("state");
  }

  /**
   * Start a second agent on a copy of the first agent's state directory, as on a machine whose disk was
   * copied.
   */
  clone(): void {
    // Omit sockets, because a copied disk has no open sockets.
    const filter = (path: string): boolean => !lstatSync(path).isSocket();
    cpSync(join(this.#folder, "state"), join(this.#folder, "copy"), { recursive: true, filter });
    this.#start("copy");
  }

  signal(name: NodeJS.Signals): void {
    this.#children.at(-1)?.kill(name);
  }

  async setClock(wrongByMs: number): Promise<void> {
    await writeFile(join(this.#folder, "clock"), String(wrongByMs));
  }

  /** The last lines that the agent printed. */
  async lastWords(): Promise<string> {
    return (await readFile(join(this.#folder, "log"), "utf8").catch(() => "")).slice(-2_000);
  }

  /** End every process. */
  async end(): Promise<void> {
    await Promise.all(this.#children.map(endChild));
  }

  #start(state: string): void {
    const log = openSync(join(this.#folder, "log"), "a");
    const [program = "", ...words] = this.#candidate.command;
    const at = ["--server", this.#server, "--name", "node-1", "--state-dir", join(this.#folder, state)];
    const flags = [...at, "--clock-file", join(this.#folder, "clock")];
    const child = spawn(program, [...words, ...flags], { stdio: ["ignore", log, log] });
    this.#children.push(child);
    child.once("error", () => this.#onExit(null));
    child.once("exit", (code) => {
      this.#children = this.#children.filter((one) => one !== child);
      this.#onExit(code);
    });
  }
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGCONT");
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await exited;
  clearTimeout(killer);
}
