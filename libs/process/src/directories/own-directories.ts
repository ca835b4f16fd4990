import { homedir } from "node:os";

/** The user's home directory; "/" if HOME is not set and the user id has no account, as in some containers. */
export function homeDirectory(): string {
  return orRoot(homedir);
}

/** The working directory; "/" if it was removed. */
export function workingDirectory(): string {
  return orRoot(() => process.cwd());
}

function orRoot(read: () => string): string {
  try {
    return read();
  } catch {
    return "/";
  }
}
