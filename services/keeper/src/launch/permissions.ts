import { isAbsolute, sep } from "node:path";

/** A secret with those who can use it, see canUseSecret() of the domain. */
export interface SecretGrants {
  readonly name: string;
  /** OWNER/JOB each. */
  readonly grants: readonly string[];
}

/** What the operator of a machine lets executions do. */
export interface WorkRules {
  /** Executors that are turned on. */
  readonly executors: readonly string[];
  /** The user that executions run as when their job names none; null for an id of their own, or the keeper's user. */
  readonly user: string | null;
  /** The first and the last of the user ids that executions are given, each its own; null for none. */
  readonly userIds: readonly number[] | null;
  /** Whom a job may name. */
  readonly users: readonly string[];
  /** In, or below, which a job may run. */
  readonly directories: readonly string[];
  /** Where the files of secrets are; null for none. */
  readonly secrets: string | null;
  /** Which jobs can use them. */
  readonly secretGrants: readonly SecretGrants[];
  /** Users who can read the node's key, or act as the keeper: executions never run as one of them. */
  readonly closedUserIds: readonly number[];
}

/** The user of an execution, or why it is not allowed. */
export type UserChoice =
  | { readonly ok: true; readonly kind: "named"; readonly user: string }
  /** A user id that no other execution has. */
  | { readonly ok: true; readonly kind: "own" }
  | { readonly ok: true; readonly kind: "keeper" }
  | { readonly ok: false; readonly problem: string };

/** Decide whom an execution runs as. */
export function chooseUser(named: string, rules: WorkRules): UserChoice {
  const { user, users, userIds } = rules;
  if (user !== null && (named === "" || named === user)) return { ok: true, kind: "named", user };
  if (named === "") return { ok: true, kind: userIds === null ? "keeper" : "own" };
  if ((user !== null || userIds !== null) && users.includes(named)) return { ok: true, kind: "named", user: named };
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
