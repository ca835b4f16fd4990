import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { resolve } from "node:path";
import type { Shell } from "../shell.ts";
import { findDataDirectory, readRunFile } from "./data-directory.ts";

/** A control plane that runs on this machine. */
export interface RunningHere {
  readonly dataDirectory: string;
  /** HOST:PORT of its API. */
  readonly server: string;
}

/**
 * Find the control planes that this user started on this machine with `rollcall up`, from the list of processes. Empty
 * on systems without /proc.
 */
export function controlPlanesHere({
  userId,
  processFolder: root,
}: Pick<Shell, "userId" | "processFolder">): readonly RunningHere[] {
  if (root === undefined) return [];
  return processIds(root).flatMap((pid) => {
    try {
      const dataDirectory = dataDirectoryOf(`${root}/${pid}`, userId);
      const runFile = dataDirectory === null ? null : readRunFile(dataDirectory);
      if (dataDirectory === null || runFile?.pid !== Number(pid)) return [];
      return [{ dataDirectory, server: runFile.server }];
    } catch {
      // Skip a process that has ended, or that belongs to another user.
      return [];
    }
  });
}

function processIds(root: string): readonly string[] {
  try {
    return readdirSync(root).filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** The data directory of a process if it is `rollcall up`; null otherwise. Throws when it cannot be read. */
function dataDirectoryOf(folder: string, userId: number | null): string | null {
  const words = readFileSync(`${folder}/cmdline`, "utf8").split("\0");
  if (!words.includes("up")) return null;
  const cwd = readlinkSync(`${folder}/cwd`);
  const at = words.indexOf("--data-dir");
  const named = at < 0 ? words.find((it) => it.startsWith("--data-dir="))?.slice("--data-dir=".length) : words[at + 1];
  if (named !== undefined) return resolve(cwd, named);
  const variables = readFileSync(`${folder}/environ`, "utf8").split("\0");
  const env = Object.fromEntries(variables.map((it) => [it.slice(0, it.indexOf("=")), it.slice(it.indexOf("=") + 1)]));
  return findDataDirectory({ env, cwd, home: env.HOME ?? "/", userId });
}
