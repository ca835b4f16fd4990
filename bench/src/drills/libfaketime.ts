import { existsSync } from "node:fs";

const PLACES = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
  "/usr/lib/faketime/libfaketimeMT.so.1",
];

/**
 * Find the library libfaketime for programs with threads, from Debian's package `faketime`. Returns null
 * if it is not installed.
 */
export function findLibfaketime(): string | null {
  return PLACES.find((path) => existsSync(path)) ?? null;
}
