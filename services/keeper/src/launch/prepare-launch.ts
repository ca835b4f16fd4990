import { execFile } from "node:child_process";
import { chown, lstat, mkdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "@rollcall/process";
import type { ExecutionIdentity } from "../journal/execution-record.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";
import type { UserIds } from "../users/user-ids.ts";
import { closedGroupOf } from "./closed-groups.ts";
import { SEARCH_PATH } from "./environment.ts";
import { environmentOf, Refusal, wordsOf } from "./job-environment.ts";
import { type Account, becoming, type Command } from "./launch-script.ts";
import { chooseUser, isAllowedDirectory, type UserChoice, type WorkRules } from "./permissions.ts";

/** A command with its user; null for the keeper's own. */
export interface PreparedCommand {
  readonly command: Command;
  readonly account: Account | null;
  /** Whether no other execution has the user id of its account. */
  readonly isOwn: boolean;
  /** The execution's own directory. */
  readonly home: string;
}

/** What a launch is prepared with. */
export interface LaunchServices {
  readonly rules: WorkRules;
  /** Where executions have directories of their own. */
  readonly scratch: string;
  /** Null where executions are given none. */
  readonly userIds: UserIds | null;
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
  { rules, scratch, userIds }: LaunchServices,
): Promise<Prepared> {
  try {
    if (!rules.executors.includes("process")) throw new Refusal("the node has turned its process executor off");
    const path = join(scratch, identity.id);
    const choice = chooseUser(plan.user, rules);
    if (!choice.ok) throw new Refusal(choice.problem);
    const isOwn = choice.kind === "own";
    // Before a user id is claimed for it, which only counts as used while there is a directory.
    const home = await makeHome(path);
    const account = isOwn ? await ownAccount(path, userIds) : await accountOf(choice, rules);
    if (account !== null) await chown(home, account.uid, account.gid);
    const directory = plan.directory === "" ? home : await allowedDirectory(plan.directory, rules);
    const given = await environmentOf(identity, plan, rules, { PATH: SEARCH_PATH, HOME: home });
    // By it processesOfExecution() finds its processes: no other keeper of the machine gives out this directory.
    const env = { ...given, ROLLCALL_HOME: home };
    return { ok: true, command: { argv: wordsOf(plan.argv, env), env, directory }, account, isOwn, home };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.message };
    return { ok: false, problem: `its start cannot be prepared: ${error instanceof Error ? error.message : error}` };
  }
}

/** The user id by which the directory of an execution is its own; null for one that has none. */
export async function ownUserId(home: string, userIds: readonly number[] | null): Promise<number | null> {
  const [first = 0, last = -1] = userIds ?? [];
  // Only root can change its owner.
  const uid = await stat(home).then(
    (found) => found.uid,
    () => 0,
  );
  return uid >= first && uid <= last ? uid : null;
}

async function ownAccount(home: string, userIds: UserIds | null): Promise<Account> {
  if (userIds === null) throw new Refusal("the node gives executions no user ids of their own");
  const found = await stat(home);
  // An execution that is running keeps its user id, also when the configuration has changed since it was started.
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
  throw new Refusal(`executions never run as ${choice.user}, whose group ${group} can have the rights of root`);
}

async function makeHome(path: string): Promise<string> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (errorCode(error) !== "EEXIST") throw error;
  });
  // A link in its place, however it came there, would give away what it points to.
  if (!(await lstat(path)).isDirectory()) throw new Refusal(`${path} is no directory`);
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
export async function canBecome(account: Account): Promise<boolean> {
  const [program = "", ...words] = becoming(account, ["--no-new-privs", "--inh-caps=-all"]);
  return run(program, [...words, "true"], { timeout: LOOKUP_LIMIT_MS }).then(
    () => true,
    () => false,
  );
}
