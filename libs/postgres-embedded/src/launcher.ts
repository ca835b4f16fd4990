import { processStart } from "@rollcall/process";

/** A setting of ours on a server's command line, which Postgres keeps and ignores. */
const SETTING = "rollcall.launcher";

/** The argument by which a server names the process that launched it. */
export async function launcherArgument(): Promise<string> {
  return `${SETTING}=${process.pid}.${await began(process.pid)}`;
}

/**
 * Whether the process that launched a server still runs, by the server's command line. False also for a server without
 * the argument: one that was started by hand, or by an older version.
 */
export async function launcherRuns(args: readonly string[]): Promise<boolean> {
  const named = args.find((arg) => arg.startsWith(`${SETTING}=`))?.slice(SETTING.length + 1);
  if (named === undefined) return false;
  const pid = Number(named.split(".")[0]);
  return Number.isInteger(pid) && pid > 0 && named === `${pid}.${await began(pid)}`;
}

/** Without spaces, which may have to separate the words of a command line. */
async function began(pid: number): Promise<string> {
  return ((await processStart(pid)) ?? "").replaceAll(/[^\w]/g, "_");
}
