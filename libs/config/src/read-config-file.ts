import { readFile, stat } from "node:fs/promises";
import { type ConfigFile, LARGEST_FILE_BYTES } from "./read-yaml.ts";

/**
 * Read a configuration file for loadConfig(). The path is how messages name it.
 * Throws when it cannot be read, or is larger than 64 KiB.
 */
export async function readConfigFile(path: string): Promise<ConfigFile> {
  const { size } = await stat(path);
  if (size > LARGEST_FILE_BYTES) {
    throw new Error(`${path} has ${size} bytes: no configuration is that large`);
  }
  return { name: path, text: await readFile(path, "utf8") };
}
