import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@rollcall/process";
import { Cgroup } from "./cgroup.ts";
import type { CgroupHierarchy } from "./cgroup-hierarchy.ts";

/** The file in an execution's directory that records the hierarchy of its cgroup. */
const FILE = "cgroup";

/**
 * Save the hierarchy of an execution's cgroup before the cgroup is created; null for an execution without a cgroup.
 * The next keeper may find other hierarchies or none, and must still be able to end this execution.
 */
export async function saveCgroup(directory: string, hierarchy: CgroupHierarchy | null): Promise<void> {
  const path = join(directory, FILE);
  if (hierarchy === null) {
    await rm(path, { force: true });
    return;
  }
  await writeFile(`${path}.new`, JSON.stringify(hierarchy), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** The cgroup that an execution was launched in; null if there is none. */
export async function readCgroup(directory: string, id: string): Promise<Cgroup | null> {
  const text = await readFile(join(directory, FILE), "utf8").catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  });
  return text === null ? null : new Cgroup(JSON.parse(text), id);
}
