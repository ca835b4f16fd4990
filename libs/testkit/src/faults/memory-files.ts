import { dirname } from "node:path";

/** A file that was opened in memory. */
interface OpenFile {
  writeFile(text: string): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

interface MemoryFile {
  text: string;
  mode: number;
  /** The text that survives a power failure. */
  synced: string;
}

/**
 * A file system in memory, with the calls and errors of node:fs/promises that files of state need. It keeps what was
 * written when a program is stopped, as a machine does. It has no links and no owners.
 */
export class MemoryFiles {
  readonly #files = new Map<string, MemoryFile>();
  /** The names of files that survive a power failure. */
  #synced = new Map<string, MemoryFile>();
  readonly #directories = new Set<string>();

  /** The paths of all files, in order. */
  get paths(): readonly string[] {
    return [...this.#files.keys()].sort();
  }

  /** The text of a file; empty if there is none. */
  textOf(path: string): string {
    return this.#files.get(path)?.text ?? "";
  }

  /** Lose everything that was not synced: the texts of files, and their names in directories. */
  failPower(): void {
    this.#files.clear();
    for (const [path, file] of this.#synced) {
      file.text = file.synced;
      this.#files.set(path, file);
    }
  }

  /** Like the real one, it also syncs the parents of new directories. */
  readonly makeDirectory = async (path: string, _mode: number): Promise<void> => {
    for (let each = path; !this.#directories.has(each); each = dirname(each)) this.#directories.add(each);
  };

  readonly open = async (path: string, flags: string, mode = 0o666): Promise<OpenFile> => {
    const isWritten = flags.startsWith("w");
    if (flags === "wx" && this.#files.has(path)) throw failure("EEXIST", "open", path);
    if (!isWritten && !this.#files.has(path) && !this.#directories.has(path)) throw failure("ENOENT", "open", path);
    if (isWritten && !this.#directories.has(dirname(path))) throw failure("ENOENT", "open", path);
    const file = this.#files.get(path) ?? { text: "", mode, synced: "" };
    if (isWritten) this.#files.set(path, file);
    return {
      writeFile: async (text) => {
        file.text = text;
      },
      sync: async () => {
        if (this.#directories.has(path)) this.#syncNames(path);
        else file.synced = file.text;
      },
      close: async () => {},
    };
  };

  readonly readFile = async (path: string, _encoding: "utf8"): Promise<string> => this.#fileAt("open", path).text;

  readonly readdir = async (path: string): Promise<string[]> => {
    if (!this.#directories.has(path)) throw failure("ENOENT", "scandir", path);
    const below = [...this.#files.keys(), ...this.#directories].filter((each) => each.startsWith(`${path}/`));
    return [...new Set(below.map((each) => each.slice(path.length + 1).split("/")[0] ?? ""))].sort();
  };

  readonly stat = async (path: string): Promise<{ readonly mode: number; readonly mtimeMs: number }> => {
    if (this.#directories.has(path)) return { mode: 0o700, mtimeMs: 0 };
    return { mode: this.#fileAt("stat", path).mode, mtimeMs: 0 };
  };

  readonly chmod = async (path: string, mode: number): Promise<void> => {
    if (!this.#directories.has(path)) this.#fileAt("chmod", path).mode = mode;
  };

  readonly rename = async (from: string, to: string): Promise<void> => {
    const file = this.#fileAt("rename", from);
    this.#files.delete(from);
    this.#files.set(to, file);
  };

  readonly link = async (from: string, to: string): Promise<void> => {
    const file = this.#fileAt("link", from);
    if (this.#files.has(to)) throw failure("EEXIST", "link", to);
    this.#files.set(to, file);
  };

  readonly rm = async (path: string, { force = false, recursive = false } = {}): Promise<void> => {
    const isThere = this.#files.delete(path) || (recursive && this.#directories.delete(path));
    if (!isThere && !force) throw failure("ENOENT", "rm", path);
    if (!recursive) return;
    for (const each of this.#files.keys()) if (each.startsWith(`${path}/`)) this.#files.delete(each);
    for (const each of this.#directories) if (each.startsWith(`${path}/`)) this.#directories.delete(each);
  };

  #syncNames(directory: string): void {
    const isWithin = ([path]: readonly [string, MemoryFile]) => dirname(path) === directory;
    const others = [...this.#synced].filter((each) => !isWithin(each));
    this.#synced = new Map([...others, ...[...this.#files].filter(isWithin)]);
  }

  #fileAt(call: string, path: string): MemoryFile {
    const file = this.#files.get(path);
    if (file === undefined) throw failure("ENOENT", call, path);
    return file;
  }
}

function failure(code: string, call: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code, syscall: call, path });
}
