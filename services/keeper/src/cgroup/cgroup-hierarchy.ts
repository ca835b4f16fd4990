import { access, constants, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "@rollcall/process";

/** What cgroups of this machine can be made to limit. */
export type Limit = "cpu" | "memory" | "pids";

const LIMITS: readonly Limit[] = ["cpu", "memory", "pids"];

/** Where the cgroups of executions are made, one directory for each hierarchy. */
export interface CgroupHierarchy {
  readonly version: 1 | 2;
  /** By controller; of version 2 all are the same. `kill` is the one whose list of processes is read. */
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
 * Find where this process may make cgroups, below `rollcall/NAME` of each hierarchy; null where it may make none. They
 * are made outside the cgroup of the keeper's own unit, so that an end of the unit does not end what it keeps.
 */
export async function openCgroups(name: string, mounts?: string): Promise<CgroupHierarchy | null> {
  const text = mounts ?? (await readFile("/proc/self/mounts", "utf8").catch(() => ""));
  const found = parseMounts(text);
  return (await openSecond(found, name)) ?? (await openFirst(found, name));
}

/** Version 2, where it has the memory controller: beside version 1 it is mounted without any. */
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

/** Version 1, a hierarchy for each controller. */
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
