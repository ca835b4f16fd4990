import { execFile } from "node:child_process";
import { chown, lstat, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "@rollcall/process";
import type { ExecutionIdentity } from "../journal/execution-record.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";
import { SEARCH_PATH } from "./environment.ts";
import { environmentOf, Refusal, wordsOf } from "./job-environment.ts";
import type { Account, Command } from "./launch-script.ts";
import { chooseUser, isAllowedDirectory, type WorkRules } from "./permissions.ts";

/** A command with its user; null for the keeper's own. */
export interface PreparedCommand {
  readonly command: Command;
  readonly account: Account | null;
}

/** What to run, or why nothing is. */
export type Prepared = ({ readonly ok: true } & PreparedCommand) | { readonly ok: false; readonly problem: string };

const run = promisify(execFile);
const LOOKUP_LIMIT_MS = 5_000;
const USER_NAME = /^[A-Za-z0-9_.@][A-Za-z0-9_.@-]*\$?$/;

/** Decide as whom, where and with what an execution runs, and make its own directory. */
export async function prepareLaunch(
  identity: ExecutionIdentity,
  plan: ProcessPlan,
  rules: WorkRules,
  scratch: string,
): Promise<Prepared> {
  try {
    if (!rules.executors.includes("process")) throw new Refusal("the node has turned its process executor off");
    const account = await accountOf(plan, rules);
    const home = await makeHome(join(scratch, identity.id), account);
    const directory = plan.directory === "" ? home : await allowedDirectory(plan.directory, rules);
    const env = await environmentOf(identity, plan, rules, { PATH: SEARCH_PATH, HOME: home });
    return { ok: true, command: { argv: wordsOf(plan.argv, env), env, directory }, account };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.message };
    return { ok: false, problem: `its start cannot be prepared: ${error instanceof Error ? error.message : error}` };
  }
}

async function accountOf(plan: ProcessPlan, rules: WorkRules): Promise<Account | null> {
  const choice = chooseUser(plan.user, rules);
  if (!choice.ok) throw new Refusal(choice.problem);
  if (choice.user === null) return null;
  const account = await findAccount(choice.user);
  if (account === null) throw new Refusal(`the node has no user ${choice.user}`);
  if (account.uid === 0) throw new Refusal("executions never run as root");
  if (rules.closedUserIds.includes(account.uid)) throw new Refusal("executions never run as the agent's own user");
  return account;
}

async function makeHome(path: string, account: Account | null): Promise<string> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (errorCode(error) !== "EEXIST") throw error;
  });
  // A link in its place, however it came there, would give away what it points to.
  if (!(await lstat(path)).isDirectory()) throw new Refusal(`${path} is no directory`);
  if (account !== null) await chown(path, account.uid, account.gid);
  return path;
}

async function allowedDirectory(named: string, rules: WorkRules): Promise<string> {
  const refusal = new Refusal(`the node does not allow the directory ${named}: see its Work.Directories`);
  const path = await realpath(named).catch(() => null);
  const allowed = await Promise.all(rules.directories.map((one) => realpath(one).catch(() => null)));
  const known = allowed.filter((one) => one !== null);
  // Links are followed first, so that one inside an allowed directory leads nowhere else.
  if (path === null || !isAllowedDirectory(path, known)) throw refusal;
  return path;
}

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
