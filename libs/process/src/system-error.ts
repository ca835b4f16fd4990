import { getSystemErrorMap } from "node:util";
import { errorCode } from "./error-code.ts";

/** Clearer messages for some system errors. */
const CLEARER: Readonly<Record<string, string>> = {
  EPIPE: "its reader has closed the pipe",
  EACCES: "permission denied",
  EPERM: "permission denied",
};

/** Whether an error comes from a system call, such as opening a file without permission. */
export function isSystemError(error: unknown): error is Error {
  return error instanceof Error && "syscall" in error && errorCode(error) !== undefined;
}

/** Why a system call failed, for example "no space left on device". */
export function systemErrorWords(error: unknown): string {
  const code = errorCode(error);
  if (code !== undefined && CLEARER[code] !== undefined) return CLEARER[code];
  const { errno, message } = Object(error);
  const [, words] = getSystemErrorMap().get(errno) ?? [];
  return words ?? code ?? message ?? String(error);
}

/**
 * Describe a system error in one sentence with the name of the file: "cannot open /etc/x:
 * permission denied".
 */
export function systemErrorText(error: Error): string {
  const { syscall, path, dest } = Object(error);
  if (typeof syscall !== "string" || typeof path !== "string") return error.message;
  const place = typeof dest === "string" ? `${path} as ${dest}` : path;
  return `cannot ${VERBS[syscall] ?? syscall} ${place}: ${systemErrorWords(error)}`;
}

const VERBS: Readonly<Record<string, string>> = {
  mkdir: "make",
  rmdir: "remove",
  unlink: "remove",
  scandir: "read",
  lstat: "read",
  stat: "read",
  access: "read",
  copyfile: "copy",
};
