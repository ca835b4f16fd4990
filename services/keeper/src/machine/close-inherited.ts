import { closeSync, readdirSync, readFileSync } from "node:fs";

const CLOSED_ON_EXEC = 0o2000000;

/**
 * Close the inherited descriptors above standard error, which every child process would inherit too. In child
 * processes, Node.js closes its own descriptors, but only the lowest of the inherited ones.
 */
export function closeInherited(): void {
  for (const name of readdirSync("/proc/self/fd")) {
    const descriptor = Number(name);
    if (descriptor > 2 && isPassedOn(name)) closeSync(descriptor);
  }
}

function isPassedOn(name: string): boolean {
  try {
    const [, flags = ""] = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "utf8")) ?? [];
    return flags !== "" && (Number.parseInt(flags, 8) & CLOSED_ON_EXEC) === 0;
  } catch {
    // The descriptor that was used to read the list is closed by now.
    return false;
  }
}
