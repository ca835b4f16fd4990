import { isAbsolute, sep } from "node:path";

/** A secret and who can use it, see canUseSecret() of the domain. */
export interface SecretGrants {
  readonly name: string;
  /** The jobs that can use the secret, each as OWNER/JOB. */
  readonly grants: readonly string[];
}

/** The permissions that the operator of a machine grants to executions. */
export interface WorkRules {
  /** The enabled executors. */
  readonly executors: readonly string[];
  /**
   * The user of executions whose job names none. If null, each execution has its own user id, or runs as the
   * keeper's user.
   */
  readonly user: string | null;
  /** The first and last user id for executions, each of which gets its own id; null for none. */
  readonly userIds: readonly number[] | null;
  /** Users that a job can name. */
  readonly users: readonly string[];
  /** A job can run in these directories and below them. */
  readonly directories: readonly string[];
  /** The directory of the secrets' files; null for none. */
  readonly secrets: string | null;
  /** Which jobs can use each secret. */
  readonly secretGrants: readonly SecretGrants[];
  /** Users who can read the node's key or control the keeper. Executions never run as one of them. */
  readonly closedUserIds: readonly number[];
}

/** The user of an execution, or why that user is not allowed. */
export type UserChoice =
  | { readonly ok: true; readonly kind: "named"; readonly user: string }
  /** A user id that no other execution has. */
  | { readonly ok: true; readonly kind: "own" }
  | { readonly ok: true; readonly kind: "keeper" }
  | { readonly ok: false; readonly problem: string };

/** Decide which user an execution runs as. */
export function chooseUser(named: string, rules: WorkRules): UserChoice {
  const { user, users, userIds } = rules;
  if (user !== null && (named === "" || named === user)) return { ok: true, kind: "named", user };
  if (named === "") return { ok: true, kind: userIds === null ? "keeper" : "own" };
  if ((user !== null || userIds !== null) && users.includes(named)) return { ok: true, kind: "named", user: named };
  return { ok: false, problem: `the node does not allow the user ${named}: see its Work.Users` };
}

/** Whether a directory is an allowed directory or below one. All paths must be resolved, without links and dots. */
export function isAllowedDirectory(path: string, allowed: readonly string[]): boolean {
  if (!isAbsolute(path)) return false;
  return allowed.some((one) => path === one || path.startsWith(one.endsWith(sep) ? one : `${one}${sep}`));
}

/** Whether a name can only refer to a file in the directory of secrets. */
export function isSecretName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/.test(name);
}
