import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type DesiredState,
  type ExecutionReference,
  ExecutionReferenceSchema,
  ExecutionSpecSchema,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import type { KeeperAccess } from "../work/keeper-link.ts";

const MAIN = fileURLToPath(new URL("../../../keeper/src/testing/keeper-main.ts", import.meta.url));
const IS_ROOT = process.getuid?.() === 0;

/**
 * Starts keepers in a temporary directory, as the executable does, and kills them when a test asks for it.
 */
export class KeeperProgram {
  readonly root: string;
  /** The directories whose records loseRecords() has moved away. */
  readonly #lost: string[] = [];
  readonly #children: ChildProcess[] = [];
  #mayStart: Promise<void> = Promise.resolve();

  private constructor(root: string) {
    this.root = root;
  }

  static async create(): Promise<KeeperProgram> {
    const root = await mkdtemp(join(tmpdir(), "rollcall-agent-work-"));
    await chmod(root, 0o711);
    return new KeeperProgram(root);
  }

  /** How an agent reaches the keeper. */
  get access(): KeeperAccess {
    return this.accessWith(["process"]);
  }

  /** Access for an agent that offers these executors. */
  accessWith(executors: readonly string[]): KeeperAccess {
    const settings = {
      stateDirectory: join(this.root, "agent"),
      directory: null,
      executors,
      user: IS_ROOT ? "nobody" : null,
      users: [],
      directories: [],
      secrets: null,
      secretGrants: [],
      mayBeOwnUser: !IS_ROOT,
      dockerHost: null,
    };
    const text = JSON.stringify(Object.entries(settings).sort(([one], [other]) => (one < other ? -1 : 1)));
    return {
      isNeeded: executors.length > 0,
      socketPath: join(this.root, "agent/keeper/socket"),
      expected: { version: "0.1.0", settingsDigest: createHash("sha256").update(text).digest("hex") },
      start: async () => {
        await this.#mayStart;
        const args = ["--conditions=source", MAIN, JSON.stringify(settings)];
        const child = spawn(process.execPath, args, { stdio: "ignore" });
        this.#children.push(child);
        await once(child, "spawn");
      },
    };
  }

  /** Prevent keepers from starting until the returned function is called. */
  holdStarts(): () => void {
    let release = (): void => {};
    this.#mayStart = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  /**
   * Lose the records of the keepers, as if someone had emptied the directory. Running executions continue.
   */
  async loseRecords(): Promise<void> {
    const executions = join(this.root, "agent/keeper/executions");
    await rename(executions, join(this.root, `lost-${this.#lost.length}`));
    this.#lost.push(join(this.root, `lost-${this.#lost.length}`));
  }

  /** The number of keepers that were started. */
  get starts(): number {
    return this.#children.length;
  }

  /** Kill all started keepers. */
  async kill(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
  }

  homeOf(id: string): string {
    return join(this.root, "agent-work", id);
  }

  /** Whether the process of an execution exists. */
  async runs(id: string): Promise<boolean> {
    const pid = await pidIn(join(this.root, "agent/keeper/executions", id, "run/child"));
    return pid > 1 && (await stat(`/proc/${pid}`).catch(() => null)) !== null;
  }

  async dispose(): Promise<void> {
    await this.kill();
    // Kill the processes that no keeper stops anymore.
    for (const executions of [join(this.root, "agent/keeper/executions"), ...this.#lost]) {
      for (const id of await readdir(executions).catch(() => [])) {
        for (const name of ["child", "shim"]) killIfThere(await pidIn(join(executions, id, "run", name)));
      }
    }
    await rm(this.root, { recursive: true, force: true });
  }
}

async function pidIn(path: string): Promise<number> {
  return Number.parseInt(await readFile(path, "utf8").catch(() => ""), 10);
}

function killIfThere(pid: number): void {
  try {
    if (pid > 1) process.kill(pid, "SIGKILL");
  } catch {
    // Ignore the error, because the process has already ended.
  }
}

/** A spec that runs this shell script, as a server stores it. */
export function shellSpec(script: string): { readonly spec: Uint8Array; readonly digest: Uint8Array } {
  const value = { command: ["sh", "-c", script] };
  const init = { job: "job-1", task: { case: "process" as const, value } };
  const spec = toBinary(ExecutionSpecSchema, create(ExecutionSpecSchema, init));
  return { spec, digest: createHash("sha256").update(spec).digest() };
}

/** A reference to an execution, as a server sends it. */
export function referenceTo(
  id: string,
  desired: DesiredState,
  { digest }: { readonly digest: Uint8Array },
): ExecutionReference {
  return create(ExecutionReferenceSchema, { id, desired, specDigest: digest });
}
