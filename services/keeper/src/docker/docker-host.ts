import { stat } from "node:fs/promises";
import { join } from "node:path";

/** Where a container engine listens on this machine, or why that cannot be. */
export type DockerHost =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly problem: string };

const DOCKER = "/var/run/docker.sock";
const PODMAN = "/run/podman/podman.sock";

/** Read an address as DOCKER_HOST has it. Its engine must be this machine's: ports, GPUs and limits are. */
export function parseDockerHost(words: string): DockerHost {
  const path = words.replace(/^unix:\/\//, "");
  if (path.startsWith("/")) return { ok: true, path };
  return { ok: false, problem: `${words} is no address of a socket of this machine, such as unix://${DOCKER}` };
}

/** Find the engine of this machine: the one that is named, else docker's, else podman's. */
export async function findDockerHost(
  words: string | null,
  runtimeDirectory = process.env.XDG_RUNTIME_DIR,
): Promise<DockerHost> {
  if (words !== null) return parseDockerHost(words);
  const own = runtimeDirectory === undefined ? [] : [join(runtimeDirectory, "podman/podman.sock")];
  for (const path of [DOCKER, PODMAN, ...own]) {
    const isSocket = await stat(path).then(
      (found) => found.isSocket(),
      () => false,
    );
    if (isSocket) return { ok: true, path };
  }
  return { ok: false, problem: `there is no socket ${DOCKER} or ${PODMAN}: see Work.Docker.Host` };
}
