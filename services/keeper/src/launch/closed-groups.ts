import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const LIMIT_MS = 5_000;

/**
 * Groups whose members can become root, or access root's files, through container or VM engines, the machine's disks
 * or memory, password hashes, or sudo.
 */
const CLOSED_GROUPS: readonly string[] = [
  ...["admin", "disk", "docker", "incus", "incus-admin", "kmem", "kvm", "libvirt", "lxc", "lxd", "microk8s", "podman"],
  ...["root", "shadow", "sudo", "wheel"],
];

/**
 * Find the user's group that forbids running executions as this user, even if the configuration names the user. Null
 * if no group forbids it or the user does not exist. Throws when the groups cannot be read.
 */
export async function closedGroupOf(user: string): Promise<string | null> {
  if (user.startsWith("-")) return null;
  const [names, ids] = [await groupsOf(user, "-Gn"), await groupsOf(user, "-G")];
  // Check for group 0, which is root's group, whatever its name.
  return names.find((name) => CLOSED_GROUPS.includes(name)) ?? (ids.includes("0") ? "root" : null);
}

async function groupsOf(user: string, option: "-Gn" | "-G"): Promise<readonly string[]> {
  const { stdout } = await run("id", [option, user], { timeout: LIMIT_MS }).catch((error: IdFailure) => {
    // With exit code 1, either the user does not exist and nothing is printed, or some group has no name and all
    // groups are printed.
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
