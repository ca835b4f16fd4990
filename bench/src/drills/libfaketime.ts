import { existsSync } from "node:fs";

const PLACES = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
  "/usr/lib/faketime/libfaketimeMT.so.1",
];

/**
 * Where libfaketime for programs with threads is, which Debian's package `faketime` brings; null when it is not
 * installed.
 */
export function findLibfaketime(): string | null {
  return PLACES.find((path) => existsSync(path)) ?? null;
}
