// A separate control plane for the tests. It is a real process with a temporary data directory.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "@rollcall/client";

const BIN = env.ROLLCALL_BIN ?? "../../bin/rollcall";
const LIMIT_MS = 180_000;

/**
 * Wait until a condition is true.
 * @param {string} what
 * @param {() => boolean | Promise<boolean>} isSo
 */
export async function eventually(what, isSo) {
  const endMs = performance.now() + LIMIT_MS;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`it did not come true: ${what}`);
    await pause(50);
  }
}

/** A running `rollcall up`. It keeps its ports when it restarts. */
export class ControlPlane {
  root = mkdtempSync(join(tmpdir(), "rollcall-typescript-"));
  data = join(this.root, "data");
  tokenFile = join(this.data, "admin-token");
  server = "";
  /** @type {string[]} */
  flags = [];
  /** @type {import("node:child_process").ChildProcess | null} */
  process = null;

  /** Start the process, and wait until it responds. */
  async start() {
    if (this.flags.length === 0) await this.choosePorts();
    const log = openSync(join(this.root, "up.log"), "a");
    this.process = spawn(BIN, ["up", `--data-dir=${this.data}`, ...this.flags], { stdio: ["ignore", log, log] });
    closeSync(log);
    await eventually(`it answers: ${join(this.root, "up.log")}`, async () => {
      if (this.process?.exitCode != null) throw new Error(readFileSync(join(this.root, "up.log"), "utf8"));
      const client = this.client({ timeoutMs: 1_000 });
      try {
        await client.registry.getClusterSummary();
        return true;
      } catch {
        return false;
      } finally {
        client.close();
      }
    });
  }

  /**
   * End the process.
   * @param {NodeJS.Signals} signal
   */
  async end(signal) {
    const ended = this.process;
    this.process = null;
    if (ended === null || ended.exitCode !== null) return;
    const exit = once(ended, "exit");
    ended.kill(signal);
    await exit;
  }

  /** Kill the process, as in a crash, and restart it. */
  async crash() {
    await this.end("SIGKILL");
    await this.start();
  }

  async dispose() {
    await this.end("SIGTERM");
    // The agent and the keeper end a little later, and write files until they do.
    await rm(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  /** @param {import("@rollcall/client").ClientOptions} options */
  client(options = {}) {
    return new Client({ server: this.server, tokenFile: this.tokenFile, ...options });
  }

  async choosePorts() {
    mkdirSync(this.data, { mode: 0o700 });
    const servers = await Promise.all(
      ["port", "agent-port", "probe-port", "internal-port"].map(async (name) => {
        const listening = createServer().listen(0, "127.0.0.1");
        await once(listening, "listening");
        const address = listening.address();
        const port = typeof address === "object" && address !== null ? address.port : 0;
        if (name === "port") this.server = `127.0.0.1:${port}`;
        this.flags.push(`--${name}=${port}`);
        return listening;
      }),
    );
    await Promise.all(servers.map((it) => new Promise((done) => it.close(done))));
  }
}
