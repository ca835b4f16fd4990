import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The folder of the libraries that a package bundles for its Node.js; null for any other Node.js. `bin/rollcall` puts
 * this folder into LD_LIBRARY_PATH.
 */
function bundledLibraries(execPath: string): string | null {
  const folder = join(dirname(dirname(execPath)), "lib");
  return existsSync(join(folder, "libatomic.so.1")) ? folder : null;
}

/** The environment to start this Node.js with again. */
export function withBundledLibraries(env: Environment, execPath: string): Environment {
  const folder = bundledLibraries(execPath);
  if (folder === null) return env;
  const others = env.LD_LIBRARY_PATH ? `:${env.LD_LIBRARY_PATH}` : "";
  return { ...env, LD_LIBRARY_PATH: `${folder}${others}` };
}

/** Remove the bundled libraries from an environment, so that child processes use the machine's libraries. */
export function removeBundledLibraries(env: Record<string, string | undefined>, execPath: string): void {
  const folder = bundledLibraries(execPath);
  const [first, ...others] = (env.LD_LIBRARY_PATH ?? "").split(":");
  if (folder === null || first !== folder) return;
  if (others.length === 0) delete env.LD_LIBRARY_PATH;
  else env.LD_LIBRARY_PATH = others.join(":");
}
