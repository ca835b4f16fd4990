import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { chmod, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BenchContext } from "../../bench-context.ts";
import { ROLLCALL_PROGRAM } from "../../servers/rollcall.ts";

const IS_ROOT = process.getuid?.() === 0;

/** A machine whose agent and keeper are real processes, with its own directory. */
export class DrilledMachine {
  readonly name: string;
  readonly directory: string;
  readonly #context: BenchContext;
  readonly #server: string;
  readonly #group: string;
  readonly #children: ChildProcess[] = [];
  #agent: ChildProcess | null = null;
  #ownKeeper: { readonly directory: string; process: ChildProcess | null } | null = null;
  #engine: string | null = null;
  #remembered = 0;

  /** @param of its `group` is the value of the machine's label `drill`, which jobs select. */
  constructor(context: BenchContext, of: { readonly name: string; readonly group: string; readonly server: string }) {
    const { name, group, server } = of;
    this.#context = context;
    this.name = name;
    this.#group = group;
    this.#server = server;
    this.directory = join(context.directory, name);
    context.atEnd(() => this.#stop());
  }

  get stateDirectory(): string {
    return join(this.directory, "state");
  }

  /** The process id that a fault stored with `remember()`. */
  get remembered(): number {
    return this.#remembered;
  }

  remember(pid: number): void {
    this.#remembered = pid;
  }

  atEnd(end: () => Promise<void>): void {
    this.#context.atEnd(end);
  }

  /** Use a separate keeper, which the agent cannot restart. */
  async useOwnKeeper(): Promise<void> {
    this.#ownKeeper = { directory: join(this.directory, "keeper"), process: null };
  }

  useEngine(path: string): void {
    this.#engine = path;
  }

  /** Create the directory, so that files can be prepared in it. */
  async makeDirectory(): Promise<void> {
    // Executions run as another user. That user must be able to traverse the directory.
    await chmod(this.#context.directory, 0o711);
    await mkdir(this.directory, { mode: 0o711 });
  }

  async start(): Promise<void> {
    await mkdir(this.stateDirectory, { mode: 0o700 });
    if (this.#ownKeeper !== null) await this.startOwnKeeper();
    const words = [
      "--server",
      this.#server,
      "--name",
      this.name,
      "--label",
      `drill=${this.#group}`,
      "--set",
      "Compute.Heartbeat.Interval=1s",
    ];
    this.#agent = this.#spawn("agent", ["agent", ...words, ...this.#workFlags()]);
  }

  signalAgent(signal: NodeJS.Signals): void {
    this.#agent?.kill(signal);
  }

  async startOwnKeeper(): Promise<void> {
    if (this.#ownKeeper !== null) this.#ownKeeper.process = this.#spawn("keeper", ["keeper", ...this.#workFlags()]);
  }

  async killOwnKeeper(): Promise<void> {
    const child = this.#ownKeeper?.process;
    if (child === null || child === undefined) throw new Error(`${this.name} has no separate keeper`);
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  /** Return the process id of the keeper. */
  async keeperPid(): Promise<number> {
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const words = (await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "")).split("\0");
      if (words.includes("keeper") && words.includes(this.stateDirectory)) return Number(name);
    }
    throw new Error(`${this.name} has no keeper`);
  }

  #workFlags(): readonly string[] {
    const user = IS_ROOT ? ["--work-user", "nobody"] : ["--work-same-user"];
    const engine = this.#engine === null ? [] : ["--docker-host", `unix://${this.#engine}`];
    const own = this.#ownKeeper === null ? [] : ["--keeper-dir", this.#ownKeeper.directory];
    const executors = this.#engine === null ? "process" : "process,docker";
    return ["--state-dir", this.stateDirectory, "--executors", executors, ...user, ...engine, ...own];
  }

  #spawn(what: string, words: readonly string[]): ChildProcess {
    const log = openSync(join(this.#context.directory, `${this.name}-${what}.log`), "a");
    const child = spawn(process.execPath, [...process.execArgv, ROLLCALL_PROGRAM, ...words], {
      stdio: ["ignore", log, log],
    });
    this.#children.push(child);
    return child;
  }

  async #stop(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
    const keeper = await this.keeperPid().catch(() => null);
    if (keeper !== null) process.kill(keeper, "SIGKILL");
  }
}
