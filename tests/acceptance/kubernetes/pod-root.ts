import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Container, FileSource, Volume } from "../../kubernetes/manifests.ts";

/**
 * The data that a cluster provides to its pods: the contents of ConfigMaps and Secrets, keyed by name, and tokens,
 * keyed by audience.
 */
export interface PodData {
  readonly configMaps: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  token(audience: string | undefined): Promise<string>;
  /** Return the path at which a directory of the machine is stored. */
  hostPath(path: string): string;
}

/** A directory of this machine, and where it is mounted in the pod. */
export interface Mount {
  readonly from: string;
  readonly to: string;
  readonly isWritable: boolean;
}

const GROUP = 65_532;

/** Write the volumes of a container to a folder. Returns where to mount each volume. */
export async function writeVolumes(folder: string, container: Container, data: PodData): Promise<readonly Mount[]> {
  const mounts: Mount[] = [];
  for (const { name, mountPath } of container.volumeMounts ?? []) {
    const volume = container.pod.volumes?.find((it) => it.name === name);
    if (volume === undefined) throw new Error(`${container.owner} has no volume ${name}`);
    if (volume.hostPath !== undefined) {
      const from = data.hostPath(volume.hostPath.path);
      mkdirSync(from, { recursive: true });
      mounts.push({ from, to: mountPath, isWritable: true });
      continue;
    }
    const from = join(folder, "volumes", name);
    for (const [path, text] of Object.entries(await filesOf(volume, data))) {
      const file = join(from, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
      // Set owner and mode as Kubernetes does for fsGroup and defaultMode.
      chownSync(file, 0, GROUP);
      chmodSync(file, 0o440);
    }
    mounts.push({ from, to: mountPath, isWritable: false });
  }
  return mounts;
}

async function filesOf({ configMap, secret, projected }: Volume, data: PodData) {
  const files: Record<string, string> = {};
  const add = (all: Readonly<Record<string, string>> | undefined, source: Omit<FileSource, "secretName">) => {
    if (all === undefined) throw new Error(`there is no ${JSON.stringify(source)}`);
    const items = source.items ?? Object.keys(all).map((key) => ({ key, path: key }));
    for (const { key, path } of items) {
      const text = all[key];
      if (text === undefined) throw new Error(`${source.name} has no ${key}`);
      files[path] = text;
    }
  };
  if (configMap !== undefined) add(data.configMaps[configMap.name ?? ""], configMap);
  if (secret !== undefined) add(data.secrets[secret.secretName ?? ""], { ...secret, name: secret.secretName ?? "" });
  for (const source of projected?.sources ?? []) {
    if (source.configMap !== undefined) add(data.configMaps[source.configMap.name ?? ""], source.configMap);
    const token = source.serviceAccountToken;
    if (token !== undefined) files[token.path] = await data.token(token.audience);
  }
  return files;
}

/** The path of Node.js in a pod. */
export const NODE = "/srv/node";
export const PROGRAM = "/srv/rollcall";

/**
 * The contents of a pod's root: folders to mount and links to create. The system's own folders replace those of the
 * image.
 */
export interface ImageRoot {
  readonly links: readonly (readonly [path: string, target: string])[];
  readonly mounts: readonly Mount[];
}

/** Create the root of a pod that runs the program in a folder with this Node.js. */
export function imageRoot(programFolder: string): ImageRoot {
  const system = ["/usr", "/bin", "/sbin", "/lib", "/lib64"].filter((it) => existsSync(it));
  const isLink = (path: string) => lstatSync(path).isSymbolicLink();
  const folders = system.filter((it) => !isLink(it)).map((path) => ({ from: path, to: path, isWritable: false }));
  return {
    links: system.filter(isLink).map((path) => [path, readlinkSync(path)] as const),
    mounts: [
      ...folders,
      { from: dirname(process.execPath), to: NODE, isWritable: false },
      { from: programFolder, to: PROGRAM, isWritable: false },
    ],
  };
}
