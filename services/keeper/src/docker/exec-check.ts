import type { Readable } from "node:stream";
import type Docker from "dockerode";
import type { CheckResult } from "../check/try-port.ts";
import { type DockerEngine, messageOf, statusOf } from "./docker-engine.ts";

/** Runs the commands of checks inside a container, one at a time. */
export class ExecCheck {
  readonly #engine: Pick<DockerEngine, "client">;
  /** A command that exceeded its time limit and may still run, because an engine cannot end it. */
  #late: Docker.Exec | null = null;

  constructor(engine: Pick<DockerEngine, "client">) {
    this.#engine = engine;
  }

  /** Run a command once, as the container's user and in its environment. Never rejects. */
  async run(containerId: string, argv: readonly string[], timeoutMs: number): Promise<CheckResult> {
    try {
      return await this.#tryOnce(containerId, argv, timeoutMs);
    } catch (error) {
      return { passed: false, message: messageOf(error).slice(0, 200) };
    }
  }

  async #tryOnce(containerId: string, argv: readonly string[], timeoutMs: number): Promise<CheckResult> {
    const [quick, endless] = await Promise.all([this.#engine.client("quick"), this.#engine.client("endless")]);
    if (this.#late !== null && (await isRunning(this.#late))) {
      return { passed: false, message: "its command from an earlier check is still running" };
    }
    this.#late = null;
    const exec = await quick
      .getContainer(containerId)
      .exec({ Cmd: [...argv], AttachStdout: true, AttachStderr: true, Tty: false });
    const limit = AbortSignal.timeout(timeoutMs);
    const hasEnded = await this.#runToEnd(endless.getExec(exec.id), limit);
    if (!hasEnded) {
      this.#late = exec;
      return { passed: false, message: `its command took longer than ${timeoutMs} ms` };
    }
    const { ExitCode: code } = await exec.inspect();
    return code === 0 ? { passed: true, message: "" } : { passed: false, message: `the command ended with ${code}` };
  }

  /** Run a command until its output ends, and discard the output. Returns false if time ran out. */
  async #runToEnd(exec: Docker.Exec, limit: AbortSignal): Promise<boolean> {
    try {
      const stream = (await exec.start({ hijack: false, stdin: false, abortSignal: limit })) as Readable;
      const onAbort = (): void => void stream.destroy();
      limit.addEventListener("abort", onAbort, { once: true });
      try {
        for await (const _ of stream);
      } finally {
        limit.removeEventListener("abort", onAbort);
      }
      return !limit.aborted;
    } catch (error) {
      // Treat a request that the limit aborted as a timeout, because the engine may have started the command
      // nevertheless.
      if (limit.aborted) return false;
      throw error;
    }
  }
}

/** Whether a command still runs. An engine forgets a command that ended long ago. */
async function isRunning(exec: Docker.Exec): Promise<boolean> {
  try {
    return (await exec.inspect()).Running;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    throw error;
  }
}
