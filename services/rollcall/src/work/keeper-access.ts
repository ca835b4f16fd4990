import { spawn } from "node:child_process";
import type { KeeperAccess, WorkConfig } from "@rollcall/agent";
import { cliVersion } from "@rollcall/cli";
import { keeperSocket, settingsDigest } from "@rollcall/keeper";
import { withBundledLibraries } from "../start/bundled-libraries.ts";
import { keeperFlags, keeperSettings } from "./keeper-settings.ts";

/**
 * How an agent reaches the keeper of its machine. It starts one where none answers: a process of its own, which goes on
 * without the agent as long as it keeps something.
 */
export function keeperAccess(values: WorkConfig, stateDirectory: string, process: NodeJS.Process): KeeperAccess {
  const settings = keeperSettings(values, stateDirectory);
  const words = ["keeper", "--ends-idle", "--log-file", "--state-dir", settings.stateDirectory, ...keeperFlags(values)];
  const socketPath = keeperSocket(settings.stateDirectory, settings.directory);
  const isNeeded = settings.executors.length > 0;
  const expected = { version: cliVersion(), settingsDigest: settingsDigest(settings) };
  // The service manager starts it again.
  if (settings.directory !== null) return { socketPath, expected, isNeeded, start: null };
  return {
    socketPath,
    expected,
    isNeeded,
    start: async () => {
      const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", ...words], {
        cwd: "/",
        detached: true,
        stdio: "ignore",
        // The second is where podman of a user who is not root listens.
        env: withBundledLibraries(
          {
            PATH: process.env.PATH,
            XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR,
            // As the launcher has set it for the agent.
            MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX,
          },
          process.execPath,
        ),
      });
      await new Promise<void>((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", reject);
      });
      child.unref();
    },
  };
}
