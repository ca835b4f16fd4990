import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { workspaceRoot } from "../../support/workspace.ts";

const run = promisify(execFile);
const LIMIT_MS = 600_000;

/** An image that was built and unpacked. */
export interface UnpackedImage {
  /** The root of its files. */
  readonly root: string;
  readonly compressedBytes: number;
  readonly config: {
    readonly User: string;
    readonly Entrypoint: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
}

/** Enter the root of an image as its engine does: read-only, and as its user. The words after it are the program. */
export const READ_ONLY = `root=$1
shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
cd /
exec chroot --userspec=65532:65532 "$root" "$@"`;

/** Build the image of a tarball, beside it, and unpack it into a folder. */
export async function buildImage(tarball: string, folder: string): Promise<UnpackedImage> {
  await run(join(workspaceRoot, "deploy/image/build.sh"), [tarball], { timeout: LIMIT_MS });
  const layout = join(folder, "layout");
  const root = join(folder, "root");
  for (const path of [layout, root]) mkdirSync(path);
  await run("tar", ["-xf", tarball.replace(/\.tar\.gz$/, ".oci.tar"), "-C", layout]);
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
