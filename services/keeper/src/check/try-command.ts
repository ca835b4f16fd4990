import { spawn } from "node:child_process";
import { type Command, programScript } from "../launch/launch-script.ts";
import { type CheckResult, failed } from "./try-port.ts";

/** The context in which a command runs. */
export interface CommandContext {
  readonly timeoutMs: number;
  /** The cgroup directories that the command enters. */
  readonly cgroups: readonly string[];
  /** The words to put before `sh`. They enter the namespaces and change the user. */
  readonly words: readonly string[];
}

/**
 * Run a command once, as an execution's user and in its environment. Returns at the latest shortly after the
 * timeout.
 */
export async function tryCommand(
  command: Command,
  { timeoutMs, cgroups, words: before }: CommandContext,
): Promise<CheckResult> {
  const enter = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"';
  const words = [...cgroups, "--", ...before, "sh", "-s"];
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", enter, "rollcall-check", ...words], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
    });
    const settle = (result: CheckResult): void => {
      clearTimeout(timer);
      // Kill everything that the command started.
      killGroup(child.pid);
      resolve(result);
    };
    const timer = setTimeout(() => settle(failed(`its command took longer than ${timeoutMs} ms`)), timeoutMs);
    child.once("error", (error) => settle(failed(error.message)));
    child.once("exit", (code, signal) =>
      settle(code === 0 ? { passed: true, message: "" } : failed(`the command ended with ${signal ?? code}`)),
    );
    // Ignore errors, because a shell that exits early does not read its input.
    child.stdin.on("error", () => {});
    child.stdin.end(programScript(command));
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Ignore the error, because the process group is gone.
  }
}
