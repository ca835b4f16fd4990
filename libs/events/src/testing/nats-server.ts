import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { connect as connectSocket, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import type { NatsSettings } from "../nats-settings.ts";
import { readNatsUrl } from "../nats-url.ts";

/** A real nats-server for one test. The test can stop, kill or pause the server and delete its data. */
export interface TestNats {
  /** The URL stays the same across restarts. */
  readonly url: string;
  readonly port: number;
  readonly settings: NatsSettings;
  /** Start the server again; resolves when it accepts connections. */
  start(): Promise<void>;
  /** Orderly shutdown. */
  stop(): Promise<void>;
  /** Kill the server; resolves when it has exited. */
  kill(): Promise<void>;
  /** Pause the server: connections stay open, but it does not respond. */
  pause(): Promise<void>;
  resume(): void;
  /** Delete JetStream's data. The server must not be running. */
  removeData(): Promise<void>;
  /** Stop the server and remove its directory. */
  close(): Promise<void>;
}

/** Changes to the default server, which has JetStream but no TLS and no authentication. */
export interface TestNatsOptions {
  /** Additional configuration lines. */
  readonly config?: string;
  /** Default true. */
  readonly jetstream?: boolean;
}

const NATS_SERVER = "nats-server";
// The lowest port to use. Ports are chosen below 32768, because an outgoing connection could take a higher port
// while the server is down.
const LOWEST_PORT = 20_000;
const PORTS = 12_000;
const START_LIMIT_MS = 20_000;
const START_ATTEMPTS = 5;
const SCAN_EVERY_MS = 10;

/** Define a suite that needs nats-server on the PATH. The suite is skipped when the program is missing. */
export function describeWithNats(name: string, tests: () => void): void {
  needs(NATS_SERVER, hasNatsServer()).describe(name, tests);
}

/** Start a server with a separate directory. */
export async function startTestNats(options: TestNatsOptions = {}): Promise<TestNats> {
  const dir = await mkdtemp(join(await realpath(tmpdir()), "rollcall-nats-"));
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreePort();
    await writeFile(join(dir, "nats.conf"), configuration(dir, port, options));
    const server = new NatsServerProcess(dir, port);
    try {
      await server.start();
      return server;
    } catch (error) {
      // Try another port, because another test may have taken this port since it was chosen.
      await server.kill();
      if (attempt === START_ATTEMPTS) throw error;
    }
  }
}

class NatsServerProcess implements TestNats {
  readonly port: number;
  readonly url: string;
  readonly #dir: string;
  #process: ChildProcess | null = null;

  constructor(dir: string, port: number) {
    this.#dir = dir;
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
  }

  get settings(): NatsSettings {
    const read = readNatsUrl(this.url);
    if (!read.ok) throw new Error(`${this.url} is not a URL of NATS: ${read.reason}`);
    return { urls: [read.url] };
  }

  async start(): Promise<void> {
    const started = spawn(NATS_SERVER, ["-c", join(this.#dir, "nats.conf")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = started;
    const killWithUs = () => started.kill("SIGKILL");
    process.once("exit", killWithUs);
    started.once("exit", () => process.off("exit", killWithUs));
    let output = "";
    started.stderr?.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_096);
    });
    const endMs = performance.now() + START_LIMIT_MS;
    while (!(await greets(this.port))) {
      const hasEnded = started.exitCode !== null || started.signalCode !== null;
      if (hasEnded || performance.now() > endMs) throw new Error(`no nats-server: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, SCAN_EVERY_MS));
    }
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /**
   * Stop all threads of the server. The signal reaches the threads one after another, so wait for the last thread.
   */
  async pause(): Promise<void> {
    const { pid } = this.#process ?? {};
    if (pid === undefined) return;
    process.kill(pid, "SIGSTOP");
    await until("nats-server to be stopped", async () => (await threadStates(pid)).every((state) => state === "T"));
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  async removeData(): Promise<void> {
    if (this.#process !== null) throw new Error("the nats-server is running");
    await rm(join(this.#dir, "data"), { recursive: true, force: true, maxRetries: 10 });
  }

  async close(): Promise<void> {
    await this.kill();
    await rm(this.#dir, { recursive: true, force: true, maxRetries: 10 });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const ending = this.#process;
    this.#process = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = once(ending, "exit");
    ending.kill(signal);
    // Let a paused process continue, because it handles no signal but SIGKILL.
    if (signal !== "SIGKILL") ending.kill("SIGCONT");
    await ended;
  }
}

let isInstalled: boolean | null = null;

function hasNatsServer(): boolean {
  isInstalled ??= spawnSync(NATS_SERVER, ["--version"]).status === 0;
  return isInstalled;
}

function configuration(dir: string, port: number, options: TestNatsOptions): string {
  const { jetstream = true, config = "" } = options;
  const storage = `jetstream { store_dir: ${JSON.stringify(join(dir, "data"))} }`;
  return [`listen: "127.0.0.1:${port}"`, jetstream ? storage : "", config, ""].join("\n");
}

async function findFreePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORTS);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

/** Whether a server sends the INFO message that each new client receives. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectSocket({ port, host: "127.0.0.1", timeout: 1_000 });
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("data", () => settle(true));
    socket.once("timeout", () => settle(false));
    socket.once("error", () => settle(false));
    socket.once("close", () => settle(false));
  });
}

/** Read the states of a process's threads, one letter each; empty on systems without /proc. */
async function threadStates(pid: number): Promise<readonly string[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const stats = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, "utf8")));
  return stats.map((stat) => stat.slice(stat.lastIndexOf(")") + 2).charAt(0));
}
