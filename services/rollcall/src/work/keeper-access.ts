import { spawn } from "node:child_process";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { KeeperAccess, WorkConfig } from "@rollcall/agent";
import { cliVersion } from "@rollcall/cli";
import { keeperSocket, settingsDigest } from "@rollcall/keeper";
import { makeDirectory } from "@rollcall/process";
import { withBundledLibraries } from "../start/bundled-libraries.ts";
import { keeperFlags, keeperSettings } from "./keeper-settings.ts";

/** The file in the keeper's directory with its log. */
export const KEEPER_LOG = "keeper.log";

/**
 * How an agent reaches the keeper of its machine. If no keeper responds, the agent starts one: a separate process that
 * keeps running without the agent as long as it has executions.
 */
export function keeperAccess(values: WorkConfig, stateDirectory: string, process: NodeJS.Process): KeeperAccess {
  const settings = keeperSettings(values, stateDirectory);
  const words = ["keeper", "--ends-idle", "--log-file", "--state-dir", settings.stateDirectory, ...keeperFlags(values)];
  const socketPath = keeperSocket(settings.stateDirectory, settings.directory);
  const isNeeded = settings.executors.length > 0;
  const expected = { version: cliVersion(), settingsDigest: settingsDigest(settings) };
  // Do not start a keeper with its own directory, because it is a service, and its service manager restarts it.
  if (settings.directory !== null) return { socketPath, expected, isNeeded, start: null };
  return {
    socketPath,
    expected,
    isNeeded,
    start: async () => {
      const log = await openKeeperLog(settings.stateDirectory);
      const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", ...words], {
        cwd: "/",
        detached: true,
        // The keeper writes here if it fails before it opens its log.
        stdio: ["ignore", "ignore", log?.fd ?? "ignore"],
        // Pass on XDG_RUNTIME_DIR, which locates podman's socket for a user who is not root.
        env: withBundledLibraries(
          {
            PATH: process.env.PATH,
            XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR,
            // Pass on this variable, which the launcher sets for the agent.
            MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX,
          },
          process.execPath,
        ),
      });
      await new Promise<void>((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", reject);
      }).finally(() => log?.close());
      child.unref();
    },
  };
}

/** Open the log file of the keeper; null if that fails, because the keeper may run even then. */
async function openKeeperLog(stateDirectory: string): Promise<FileHandle | null> {
  try {
    const directory = join(stateDirectory, "keeper");
    await makeDirectory(directory, 0o700);
    return await open(join(directory, KEEPER_LOG), "a", 0o600);
  } catch {
    return null;
  }
}
