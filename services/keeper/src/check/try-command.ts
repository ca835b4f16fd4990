import { spawn } from "node:child_process";
import { type Command, programScript } from "../launch/launch-script.ts";
import { type CheckResult, failed } from "./try-port.ts";

/** What a command is run with. */
export interface CommandContext {
  readonly timeoutMs: number;
  /** Directories of cgroups that it enters. */
  readonly cgroups: readonly string[];
  /** The words before `sh`, which enter the namespaces and change the user. */
  readonly words: readonly string[];
}

/** Run a command once, as an execution's user and in its environment. It takes hardly longer than its time. */
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
      // What the command began ends with it.
      killGroup(child.pid);
      resolve(result);
    };
    const timer = setTimeout(() => settle(failed(`its command took longer than ${timeoutMs} ms`)), timeoutMs);
    child.once("error", (error) => settle(failed(error.message)));
    child.once("exit", (code, signal) =>
      settle(code === 0 ? { passed: true, message: "" } : failed(`its command ended with ${signal ?? code}`)),
    );
    // A shell that ended early does not read it.
    child.stdin.on("error", () => {});
    child.stdin.end(programScript(command));
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}
