import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const LIMIT_MS = 5_000;

/**
 * Groups whose members can become root, or read and write what only root should: by an engine of containers or of
 * virtual machines, by the machine's disks or memory, by the hashes of passwords, or by asking for it.
 */
const CLOSED_GROUPS: readonly string[] = [
  ...["admin", "disk", "docker", "incus", "incus-admin", "kmem", "kvm", "libvirt", "lxc", "lxd", "microk8s", "podman"],
  ...["root", "shadow", "sudo", "wheel"],
];

/**
 * The group because of which executions never run as this user, although the configuration names it. Null when there is
 * none, and for a user that does not exist. Throws when the groups cannot be read.
 */
export async function closedGroupOf(user: string): Promise<string | null> {
  if (user.startsWith("-")) return null;
  const [names, ids] = [await groupsOf(user, "-Gn"), await groupsOf(user, "-G")];
  // A group of the number 0 is root's, whatever its name.
  return names.find((name) => CLOSED_GROUPS.includes(name)) ?? (ids.includes("0") ? "root" : null);
}

async function groupsOf(user: string, option: "-Gn" | "-G"): Promise<readonly string[]> {
  const { stdout } = await run("id", [option, user], { timeout: LIMIT_MS }).catch((error: IdFailure) => {
    // Exit code 1: there is no such user, and nothing is printed; or one group has no name, and all are printed.
    if (error.code === 1) return error;
    throw new Error(`the groups of ${user} cannot be read: ${error.message}`, { cause: error });
  });
  return stdout.trim().split(/\s+/);
}

interface IdFailure {
  readonly code?: unknown;
  readonly stdout: string;
  readonly message: string;
}
