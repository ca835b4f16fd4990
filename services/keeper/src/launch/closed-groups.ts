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
 * The group for which executions never run as a user, although the configuration names it; null when there is none, and
 * for a user that is not known.
 */
export async function closedGroupOf(user: string): Promise<string | null> {
  if (user.startsWith("-")) return null;
  const [names, ids] = [await groupsOf(user, "-Gn"), await groupsOf(user, "-G")];
  // A group of the number 0 is root's, whatever its name.
  return names.find((name) => CLOSED_GROUPS.includes(name)) ?? (ids.includes("0") ? "root" : null);
}

async function groupsOf(user: string, option: "-Gn" | "-G"): Promise<readonly string[]> {
  const found = await run("id", [option, user], { timeout: LIMIT_MS }).catch(() => ({ stdout: "" }));
  return found.stdout.trim().split(/\s+/);
}
