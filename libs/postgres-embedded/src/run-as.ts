import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { EmbeddedPostgresError } from "./errors.ts";
import type { Binaries } from "./programs.ts";

/** The user that runs Postgres, which refuses to run as root. */
export type RunAs =
  | { readonly kind: "self" }
  /**
   * Root in a user namespace without a mapping. Postgres does not notice that it runs as root, but can still use root's
   * files.
   */
  | { readonly kind: "namespace" }
  | { readonly kind: "user"; readonly uid: number; readonly gid: number };

export interface RunAsFacts {
  /** This process's user id; undefined on systems without user ids. */
  readonly uid: number | undefined;
  readonly namespacesWork: boolean;
  /** The user id of the data directory's owner; null before the directory exists. */
  readonly dataOwnerUid: number | null;
  /** An unprivileged account. */
  readonly unprivileged: { readonly uid: number; readonly gid: number };
}

/**
 * Decide which user runs Postgres. If this process is root and another user owns the data directory, the owner runs
 * it.
 */
export function chooseRunAs(facts: RunAsFacts): RunAs {
  if (facts.uid !== 0) return { kind: "self" };
  if (facts.dataOwnerUid !== null && facts.dataOwnerUid !== 0) {
    return { kind: "user", uid: facts.dataOwnerUid, gid: facts.unprivileged.gid };
  }
  if (facts.namespacesWork) return { kind: "namespace" };
  return { kind: "user", ...facts.unprivileged };
}

/** Wrap a program and its arguments to run as another user. */
export function commandAs(
  runAs: RunAs,
  program: string,
  args: readonly string[],
): { readonly command: string; readonly args: readonly string[]; readonly options: UserOptions } {
  switch (runAs.kind) {
    case "self":
      return { command: program, args, options: {} };
    case "namespace":
      return { command: "unshare", args: ["-U", "--", program, ...args], options: {} };
    case "user":
      return { command: program, args, options: { uid: runAs.uid, gid: runAs.gid } };
  }
}

/** The `spawn` options that change the user. */
export interface UserOptions {
  readonly uid?: number;
  readonly gid?: number;
}

/** Whether root can create a user namespace on this machine. Many containers forbid it. */
export function namespacesWork(): boolean {
  return spawnSync("unshare", ["-U", "--", "true"], { stdio: "ignore" }).status === 0;
}

/** The account for Postgres when user namespaces are unavailable: `postgres` if it exists, or else `nobody`. */
export function unprivilegedAccount(passwdFile = "/etc/passwd"): { uid: number; gid: number } {
  const accounts = existsSync(passwdFile) ? readFileSync(passwdFile, "utf8").split("\n") : [];
  for (const name of ["postgres", "nobody"]) {
    const fields = accounts.find((line) => line.startsWith(`${name}:`))?.split(":");
    const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  return { uid: 65_534, gid: 65_534 };
}

/**
 * Check that the packaged Postgres runs on this machine as this user.
 *
 * @throws EmbeddedPostgresError that says why not.
 */
export function checkRunnable(binaries: Binaries, runAs: RunAs): void {
  const { command, args, options } = commandAs(runAs, binaries.postgres, ["--version"]);
  const result = spawnSync(command, args, { ...options, encoding: "utf8" });
  if (result.status === 0) return;
  const detail = result.error?.message ?? (result.stderr.trim() || `exit code ${result.status}`);
  const as = runAs.kind === "user" ? ` as user ${runAs.uid}` : "";
  throw new EmbeddedPostgresError(
    `the packaged Postgres does not run on this machine${as} (${detail}): set DATABASE_URL to a Postgres server`,
    { cause: result.error },
  );
}
