import { chown, lstat, mkdir, open, realpath } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@rollcall/process";
import type { ExecutionIdentity } from "../journal/execution-record.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";
import { findAccount } from "./accounts.ts";
import { expand, makeEnvironment, wrongNames } from "./environment.ts";
import type { Account, Command } from "./launch-script.ts";
import { chooseUser, isAllowedDirectory, isSecretName, type WorkRules } from "./permissions.ts";

/** A command with its user; null for the keeper's own. */
export interface PreparedCommand {
  readonly command: Command;
  readonly account: Account | null;
}

/** What is to be run, or why nothing is. */
export type Prepared = ({ readonly ok: true } & PreparedCommand) | { readonly ok: false; readonly problem: string };

const MOST_SECRET_BYTES = 65_536;

class Refusal extends Error {}

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
    const secrets = await readSecrets(plan.secretEnv, rules);
    const env = makeEnvironment({ ...identity, job: plan.job, home, env: plan.env, secrets });
    const wrong = wrongNames(env);
    if (wrong.length > 0) throw new Refusal(`these variables cannot be set: ${wrong.slice(0, 5).join(", ")}`);
    const argv = plan.argv.map((word) => expand(word, env));
    if (argv.some((word) => word.includes("\0"))) throw new Refusal("its command holds a NUL");
    return { ok: true, command: { argv, env, directory }, account };
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

async function readSecrets(
  wanted: Readonly<Record<string, string>>,
  { secrets }: WorkRules,
): Promise<Readonly<Record<string, string>>> {
  const entries = Object.entries(wanted);
  if (entries.length === 0) return {};
  if (secrets === null) throw new Refusal("the node keeps no secrets: its Work.Secrets is not set");
  const values: [string, string][] = [];
  for (const [variable, name] of entries) {
    if (!isSecretName(name)) throw new Refusal(`${JSON.stringify(name)} is not the name of a secret`);
    values.push([variable, await readSecret(secrets, name)]);
  }
  return Object.fromEntries(values);
}

async function readSecret(directory: string, name: string): Promise<string> {
  const file = await open(join(directory, name), "r").catch(() => null);
  if (file === null) throw new Refusal(`the node has no secret ${name}`);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.size > MOST_SECRET_BYTES) throw new Refusal(`the secret ${name} is no small file`);
    return (await file.readFile("utf8")).replace(/\r?\n$/, "");
  } finally {
    await file.close();
  }
}
