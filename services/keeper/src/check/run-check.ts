import { spawn } from "node:child_process";
import { get } from "node:http";
import { connect } from "node:net";
import { becoming, programScript } from "../launch/launch-script.ts";
import type { PreparedCommand } from "../launch/prepare-launch.ts";
import type { Probe } from "../spec/read-spec.ts";

/** What came of one try. */
export interface CheckResult {
  readonly passed: boolean;
  /** Why not; empty when it passed. */
  readonly message: string;
}

/** What a try works with. */
export interface CheckContext {
  readonly ports: Readonly<Record<string, number>>;
  readonly timeoutMs: number;
  /** The command of a probe, in the execution's environment and as its user. */
  readonly prepare: (argv: readonly string[]) => Promise<PreparedCommand | null>;
  /** Directories of cgroups that a command enters. */
  readonly cgroups: readonly string[];
}

const HOST = "127.0.0.1";
const PASSED: CheckResult = { passed: true, message: "" };

/** Try a check once. Never rejects, and takes hardly longer than its time. */
export async function runCheck(probe: Probe, context: CheckContext): Promise<CheckResult> {
  try {
    return await tryOnce(probe, context);
  } catch (error) {
    // What a job asks for may be what no request can have: a path with a space, a port beyond all.
    return failed(error instanceof Error ? error.message : String(error));
  }
}

async function tryOnce(probe: Probe, context: CheckContext): Promise<CheckResult> {
  if (probe.kind === "command") return runCommand(probe.argv, context);
  const port = context.ports[probe.port];
  if (port === undefined) return failed(`it has no port ${probe.port}`);
  return probe.kind === "tcp" ? tryTcp(port, context.timeoutMs) : tryHttp(port, probe.path, context.timeoutMs);
}

function tryTcp(port: number, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port });
    const settle = (result: CheckResult): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => settle(failed(`no connection within ${timeoutMs} ms`)), timeoutMs);
    socket.once("connect", () => settle(PASSED));
    socket.once("error", (error) => settle(failed(error.message)));
  });
}

function tryHttp(port: number, path: string, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    const settle = (result: CheckResult): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    const request = get({ host: HOST, port, path, agent: false }, ({ statusCode = 0 }) => {
      settle(statusCode >= 200 && statusCode < 400 ? PASSED : failed(`answered with status ${statusCode}`));
    });
    const timer = setTimeout(() => settle(failed(`no answer within ${timeoutMs} ms`)), timeoutMs);
    request.on("error", (error) => settle(failed(error.message)));
  });
}

async function runCommand(argv: readonly string[], context: CheckContext): Promise<CheckResult> {
  const prepared = await context.prepare(argv);
  if (prepared === null) return failed("its command cannot be prepared");
  const { timeoutMs, cgroups } = context;
  const enter = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"';
  const words = [...cgroups, "--", ...becoming(prepared.account), "sh", "-s"];
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
      settle(code === 0 ? PASSED : failed(`its command ended with ${signal ?? code}`)),
    );
    // A shell that ended early does not read it.
    child.stdin.on("error", () => {});
    child.stdin.end(programScript(prepared.command));
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

function failed(message: string): CheckResult {
  return { passed: false, message: message.slice(0, 200) };
}
