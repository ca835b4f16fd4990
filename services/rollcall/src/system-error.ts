/**
 * Whether an error is the system's, such as a directory that this user may not write: its text says it all, and a stack
 * would bury it.
 */
export function isOfTheSystem(error: unknown): error is Error {
  return error instanceof Error && "syscall" in error;
}
