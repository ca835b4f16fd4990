import { execFile } from "node:child_process";
import { chown, lstat, mkdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "@rollcall/process";
import type { ExecutionIdentity } from "../journal/execution-entry.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";
import type { UserIds } from "../users/user-ids.ts";
import { closedGroupOf } from "./closed-groups.ts";
import { SEARCH_PATH } from "./environment.ts";
import { environmentOf, Refusal, wordsOf } from "./job-environment.ts";
import { type Account, becoming, type Command } from "./launch-script.ts";
import { chooseUser, isAllowedDirectory, type UserChoice, type WorkRules } from "./permissions.ts";

/** A command and the account that runs it. `account` is null for the keeper's own user. */
export interface PreparedCommand {
  readonly command: Command;
  readonly account: Account | null;
  /** Whether the account's user id belongs to this execution only. */
  readonly isOwn: boolean;
  /** The execution's own directory. */
  readonly home: string;
}

/** Dependencies of a launch. */
export interface LaunchServices {
  readonly rules: WorkRules;
  /** Parent of the executions' own directories. */
  readonly scratch: string;
  /** The pool of user ids; null if executions do not have their own user ids. */
  readonly userIds: UserIds | null;
}

/** The command to run, or the reason why it cannot run. */
export type Prepared = ({ readonly ok: true } & PreparedCommand) | { readonly ok: false; readonly problem: string };

const run = promisify(execFile);
const LOOKUP_LIMIT_MS = 5_000;
const USER_NAME = /^[A-Za-z0-9_.@][A-Za-z0-9_.@-]*\$?$/;

/** Decide the user, directory and environment of an execution, and create its own directory. */
export async function prepareLaunch(
  identity: ExecutionIdentity,
  plan: ProcessPlan,
  { rules, scratch, userIds }: LaunchServices,
): Promise<Prepared> {
  try {
    if (!rules.executors.includes("process")) throw new Refusal("the node has turned its process executor off");
    const path = join(scratch, identity.id);
    const choice = chooseUser(plan.user, rules);
    if (!choice.ok) throw new Refusal(choice.problem);
    const isOwn = choice.kind === "own";
    // Create the directory before claiming a user id, because an id only counts as used while its directory exists.
    const home = await makeHome(path);
    const account = isOwn ? await ownAccount(path, userIds) : await accountOf(choice, rules);
    if (account !== null) await chown(home, account.uid, account.gid);
    const directory = plan.directory === "" ? home : await allowedDirectory(plan.directory, rules);
    const given = await environmentOf(identity, plan, rules, { PATH: SEARCH_PATH, HOME: home });
    // Set a variable by which processesOfExecution() finds the processes. No other keeper of the machine uses the
    // same directory.
    const env = { ...given, ROLLCALL_HOME: home };
    return { ok: true, command: { argv: wordsOf(plan.argv, env), env, directory }, account, isOwn, home };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.message };
    return { ok: false, problem: `the start cannot be prepared: ${error instanceof Error ? error.message : error}` };
  }
}

/** Return the execution's own user id, which is the owner of its directory; null if the execution has none. */
export async function ownUserId(home: string, userIds: readonly number[] | null): Promise<number | null> {
  const [first = 0, last = -1] = userIds ?? [];
  // Trust the owner of the directory, because only root can change it.
  const uid = await stat(home).then(
    (found) => found.uid,
    () => 0,
  );
  return uid >= first && uid <= last ? uid : null;
}

async function ownAccount(home: string, userIds: UserIds | null): Promise<Account> {
  if (userIds === null) throw new Refusal("the node has no user ids for executions: see its Work.UserIds");
  const found = await stat(home);
  // Keep the user id of a running execution, even if the configuration has changed since its start.
  if (found.uid !== 0) return { name: null, uid: found.uid, gid: found.gid };
  const uid = await userIds.claim(home);
  return { name: null, uid, gid: uid };
}

async function accountOf(
  choice: Extract<UserChoice, { readonly kind: "named" | "keeper" }>,
  rules: WorkRules,
): Promise<Account | null> {
  if (choice.kind === "keeper") return null;
  const account = await findAccount(choice.user);
  if (account === null) throw new Refusal(`the node has no user ${choice.user}`);
  if (account.uid === 0) throw new Refusal("executions never run as root");
  if (rules.closedUserIds.includes(account.uid)) throw new Refusal("executions never run as the agent's own user");
  const group = await closedGroupOf(choice.user);
  if (group === null) return account;
  throw new Refusal(`executions never run as ${choice.user}: members of its group ${group} can become root`);
}

async function makeHome(path: string): Promise<string> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (errorCode(error) !== "EEXIST") throw error;
  });
  // Refuse a link, because its target would get another owner.
  if (!(await lstat(path)).isDirectory()) throw new Refusal(`${path} is not a directory`);
  return path;
}

async function allowedDirectory(named: string, rules: WorkRules): Promise<string> {
  const refusal = new Refusal(`the node does not allow the directory ${named}: see its Work.Directories`);
  const path = await realpath(named).catch(() => null);
  const allowed = await Promise.all(rules.directories.map((one) => realpath(one).catch(() => null)));
  const known = allowed.filter((one) => one !== null);
  // Resolve links first, so that a link inside an allowed directory cannot lead elsewhere.
  if (path === null || !isAllowedDirectory(path, known)) throw refusal;
  return path;
}

/** Find a user of this machine, in any user database; null if the name does not exist. */
export async function findAccount(name: string): Promise<Account | null> {
  if (!USER_NAME.test(name)) return null;
  try {
    const { stdout } = await run("getent", ["passwd", name], { timeout: LOOKUP_LIMIT_MS });
    return parseAccount(stdout.split("\n")[0] ?? "", name);
  } catch {
    // getent exits with 2 when the user does not exist.
    return null;
  }
}

/** Parse a line of passwd(5). getent also finds users by number, so the name must match. */
function parseAccount(line: string, name: string): Account | null {
  const [found, , uid = "", gid = ""] = line.split(":");
  if (found !== name || !/^\d+$/.test(uid) || !/^\d+$/.test(gid)) return null;
  return { name, uid: Number(uid), gid: Number(gid) };
}

/** Whether this process can run a program as this user. */
export async function canBecome(account: Account): Promise<boolean> {
  const [program = "", ...words] = becoming(account, ["--no-new-privs", "--inh-caps=-all"]);
  return run(program, [...words, "true"], { timeout: LOOKUP_LIMIT_MS }).then(
    () => true,
    () => false,
  );
}
