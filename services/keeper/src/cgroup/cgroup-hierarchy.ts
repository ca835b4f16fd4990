import { access, constants, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "@rollcall/process";

/** Limits that this machine's cgroups can enforce. */
export type Limit = "cpu" | "memory" | "pids";

const LIMITS: readonly Limit[] = ["cpu", "memory", "pids"];

/** The directories in which cgroups of executions are created, one for each hierarchy. */
export interface CgroupHierarchy {
  readonly version: 1 | 2;
  /**
   * The directory of each controller; with version 2, all are the same. `kill` is the directory in which the list of
   * processes is read.
   */
  readonly roots: {
    readonly kill: string;
    readonly cpu: string | null;
    readonly memory: string | null;
    readonly pids: string | null;
  };
  readonly limits: readonly Limit[];
}

/** One line of /proc/self/mounts. */
interface Mount {
  readonly place: string;
  readonly type: string;
  readonly options: readonly string[];
}

/**
 * Find where this process can create cgroups, below `rollcall/NAME` of each hierarchy. Returns null if it cannot
 * create any. The cgroups are outside the cgroup of the keeper's own unit, so that stopping the unit does not end the
 * executions.
 */
export async function openCgroups(name: string, mounts?: string): Promise<CgroupHierarchy | null> {
  const text = mounts ?? (await readFile("/proc/self/mounts", "utf8").catch(() => ""));
  const found = parseMounts(text);
  return (await openSecond(found, name)) ?? (await openFirst(found, name));
}

/**
 * Open version 2, if it has the memory controller. On a machine that also uses version 1, version 2 is mounted without
 * controllers.
 */
async function openSecond(mounts: readonly Mount[], name: string): Promise<CgroupHierarchy | null> {
  const root = mounts.find(({ type }) => type === "cgroup2")?.place;
  if (root === undefined) return null;
  const controllers = await readFile(join(root, "cgroup.controllers"), "utf8").catch(() => "");
  const has = controllers.trim().split(" ");
  if (!has.includes("memory")) return null;
  const place = join(root, "rollcall", name);
  const wanted = LIMITS.filter((one) => has.includes(one));
  try {
    await makeDirectory(place, 0o755);
    for (const parent of [root, join(root, "rollcall"), place]) {
      await writeFile(join(parent, "cgroup.subtree_control"), wanted.map((one) => `+${one}`).join(" "));
    }
  } catch {
    return null;
  }
  if (!(await canMake(place))) return null;
  const of = (one: Limit): string | null => (wanted.includes(one) ? place : null);
  const roots = { kill: place, cpu: of("cpu"), memory: of("memory"), pids: of("pids") };
  return { version: 2, roots, limits: wanted };
}

/** Open version 1: one hierarchy for each controller. */
async function openFirst(mounts: readonly Mount[], name: string): Promise<CgroupHierarchy | null> {
  const open = async (controller: string): Promise<string | null> => {
    const mount = mounts.find(({ type, options }) => type === "cgroup" && options.includes(controller));
    if (mount === undefined) return null;
    const place = join(mount.place, "rollcall", name);
    const made = await makeDirectory(place, 0o755).then(
      () => true,
      () => false,
    );
    return made && (await canMake(place)) ? place : null;
  };
  const [cpu, memory, pids] = [await open("cpu"), await open("memory"), await open("pids")];
  const kill = pids ?? memory ?? cpu;
  if (kill === null) return null;
  const roots = { kill, cpu, memory, pids };
  return { version: 1, roots, limits: LIMITS.filter((limit) => roots[limit] !== null) };
}

function parseMounts(text: string): readonly Mount[] {
  return text.split("\n").flatMap((line) => {
    const [, place, type, options] = line.split(" ");
    if (place === undefined || type === undefined || options === undefined) return [];
    return [{ place, type, options: options.split(",") }];
  });
}

async function canMake(place: string): Promise<boolean> {
  const probe = join(place, "probe");
  try {
    await mkdir(probe).catch(() => {});
    await access(join(probe, "cgroup.procs"), constants.W_OK);
    await rmdir(probe);
    return true;
  } catch {
    return false;
  }
}
