import type { Machine } from "../machine/machine.ts";
import type { OperatingSystem } from "./machine-facts.ts";

/** Read which operating system a Linux machine runs. */
export async function readOperatingSystem(machine: Machine): Promise<OperatingSystem> {
  const text = (await machine.readText("/etc/os-release")) ?? (await machine.readText("/usr/lib/os-release")) ?? "";
  const release = parseOsRelease(text);
  return {
    family: machine.system.platform,
    name: release.get("PRETTY_NAME") ?? release.get("NAME"),
    kernel: machine.system.kernel,
    architecture: machine.system.architecture,
  };
}

/** The assignments of an os-release file, unquoted. Empty values are left out. */
export function parseOsRelease(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, key, quoted] = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line.trim()) ?? [];
    if (key === undefined || quoted === undefined) continue;
    const [, , inner] = /^(["'])(.*)\1$/.exec(quoted) ?? [];
    const value = (inner ?? quoted).replace(/\\(["'$`\\])/g, "$1");
    if (value !== "") values.set(key, value);
  }
  return values;
}
