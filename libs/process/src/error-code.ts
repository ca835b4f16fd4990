/** The code of an error of the driver or of a system call, such as `57P03` or `ENOENT`; undefined when it has none. */
export function errorCode(error: unknown): string | undefined {
  // Not `instanceof Error`: errors of Node's own modules come from another realm where modules are sandboxed.
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
