import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Account } from "./launch-script.ts";

const run = promisify(execFile);
const LOOKUP_LIMIT_MS = 5_000;
const USER_NAME = /^[A-Za-z0-9_.@][A-Za-z0-9_.@-]*\$?$/;

/** Find a user of this machine, wherever its users are kept; null when there is none of this name. */
export async function findAccount(name: string): Promise<Account | null> {
  if (!USER_NAME.test(name)) return null;
  try {
    const { stdout } = await run("getent", ["passwd", name], { timeout: LOOKUP_LIMIT_MS });
    return parseAccount(stdout.split("\n")[0] ?? "", name);
  } catch {
    // It ends with 2 when there is no such user.
    return null;
  }
}

/** Read a line of passwd(5). A lookup by number finds users as well: only the name itself counts. */
function parseAccount(line: string, name: string): Account | null {
  const [found, , uid = "", gid = ""] = line.split(":");
  if (found !== name || !/^\d+$/.test(uid) || !/^\d+$/.test(gid)) return null;
  return { name, uid: Number(uid), gid: Number(gid) };
}

/** Whether this process can make another one a user's. */
export async function canBecome({ uid, gid }: Account): Promise<boolean> {
  const words = [`--reuid=${uid}`, `--regid=${gid}`, "--init-groups", "--no-new-privs", "--inh-caps=-all", "true"];
  return run("setpriv", words, { timeout: LOOKUP_LIMIT_MS }).then(
    () => true,
    () => false,
  );
}
