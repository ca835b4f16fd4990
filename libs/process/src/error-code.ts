/**
 * The code of an error from the database driver or a system call, such as `57P03` or `ENOENT`; undefined when it has
 * none.
 */
export function errorCode(error: unknown): string | undefined {
  // Do not use `instanceof Error`: where modules are sandboxed, errors of Node.js come from another realm.
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
