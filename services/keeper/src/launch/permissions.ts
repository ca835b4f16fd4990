import { isAbsolute, sep } from "node:path";

/** What the operator of a machine lets executions do. */
export interface WorkRules {
  /** Executors that are turned on. */
  readonly executors: readonly string[];
  /** The user that executions run as when their job names none; null where they run as the keeper's own user. */
  readonly user: string | null;
  /** Whom a job may name. */
  readonly users: readonly string[];
  /** In, or below, which a job may run. */
  readonly directories: readonly string[];
  /** Where the files of secrets are; null for none. */
  readonly secrets: string | null;
  /** Users who can read the node's key, or act as the keeper: executions never run as one of them. */
  readonly closedUserIds: readonly number[];
}

/** The user of an execution, or why it is not allowed. */
export type UserChoice =
  | { readonly ok: true; readonly user: string | null }
  | { readonly ok: false; readonly problem: string };

/** Decide whom an execution runs as. */
export function chooseUser(named: string, rules: WorkRules): UserChoice {
  if (named === "" || named === rules.user) return { ok: true, user: rules.user };
  if (rules.user !== null && rules.users.includes(named)) return { ok: true, user: named };
  return { ok: false, problem: `the node does not allow the user ${named}: see its Work.Users` };
}

/** Whether a directory is one of those allowed or below one. All paths are real: without links and dots. */
export function isAllowedDirectory(path: string, allowed: readonly string[]): boolean {
  if (!isAbsolute(path)) return false;
  return allowed.some((one) => path === one || path.startsWith(one.endsWith(sep) ? one : `${one}${sep}`));
}

/** Whether a name is that of a file in the directory of secrets, and of no other. */
export function isSecretName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/.test(name);
}
