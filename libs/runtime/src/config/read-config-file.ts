import { readFile, stat } from "node:fs/promises";
import type { ConfigFile } from "./read-yaml.ts";

const LARGEST_BYTES = 1_048_576;

/**
 * Read a configuration file for loadConfig(). The path is how messages name it.
 * Throws when it cannot be read, or is larger than 1 MiB.
 */
export async function readConfigFile(path: string): Promise<ConfigFile> {
  const { size } = await stat(path);
  if (size > LARGEST_BYTES) throw new Error(`${path} is larger than 1 MiB: not a configuration`);
  return { name: path, text: await readFile(path, "utf8") };
}
