import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface UnpackedImage {
  /** The root folder of the image's files. */
  readonly root: string;
  readonly compressedBytes: number;
  readonly config: {
    readonly User: string;
    readonly Entrypoint: readonly string[];
    /** The variables, each as NAME=VALUE. */
    readonly Env: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
}

/**
 * A script that enters the root of an image as an engine does: read-only, and as the image's user. The
 * remaining arguments are the program.
 */
export const READ_ONLY = `root=$1
shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
cd /
exec chroot --userspec=65532:65532 "$root" "$@"`;

/** Unpack an image from an archive with an OCI layout. */
export async function unpackImage(archive: string, folder: string): Promise<UnpackedImage> {
  const layout = join(folder, "layout");
  const root = join(folder, "root");
  for (const path of [layout, root]) mkdirSync(path);
  await run("tar", ["-xf", archive, "-C", layout]);
  const blob = (digest: string) => join(layout, "blobs/sha256", digest.replace("sha256:", ""));
  const read = (path: string) => JSON.parse(readFileSync(path, "utf8"));
  const [{ digest }]: [{ digest: string }] = read(join(layout, "index.json")).manifests;
  const manifest: { config: { digest: string }; layers: { digest: string }[] } = read(blob(digest));
  const layers = manifest.layers.map((layer) => blob(layer.digest));
  for (const layer of layers) await run("tar", ["-xzf", layer, "-C", root]);
  return {
    root,
    compressedBytes: layers.reduce((bytes, layer) => bytes + statSync(layer).size, 0),
    config: read(blob(manifest.config.digest)).config,
  };
}
