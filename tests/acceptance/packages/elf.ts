import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";

/** The requirements that an ELF file declares. */
export interface ElfFile {
  /** The path below the folder. */
  readonly path: string;
  /** The machine for which the instructions are, as a number of the ELF format. */
  readonly machine: number;
  /** The loader that the file requires; null for a library. */
  readonly interpreter: string | null;
  /** The newest minor version N of the C library 2.N whose symbols the file needs; 0 if it needs none. */
  readonly glibc: number;
}

/** The numbers of machines in the ELF format, keyed by platform. */
export const ELF_MACHINES = { x64: 62, arm64: 183 } as const;

const MAGIC = "\x7fELF";
const HEADER_BYTES = 20;
const MACHINE_AT = 18;

/** Find every executable and library below a folder, sorted by path. */
export function elfFilesIn(folder: string): readonly ElfFile[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => headerOf(path).toString("latin1", 0, MAGIC.length) === MAGIC)
    .map((path) => {
      const text = readFileSync(path).toString("latin1");
      const versions = [...text.matchAll(/\bGLIBC_2\.(\d+)\b/g)].map(([, minor]) => Number(minor));
      return {
        path: path.slice(folder.length + 1),
        machine: headerOf(path).readUInt16LE(MACHINE_AT),
        interpreter: /\/lib(?:64)?\/ld-linux-[a-z0-9-]+\.so\.\d/.exec(text)?.[0] ?? null,
        glibc: Math.max(0, ...versions),
      };
    })
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

function headerOf(path: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, "r");
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  return header;
}
