import { chmod, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type DurableFiles, errorCode, type Logger, makeDirectory, replaceFile } from "@rollcall/process";
import { type Execution, formatRecord, isExecutionId, parseRecord } from "./execution-entry.ts";

/** The calls of a journal to the file system. */
export interface JournalFiles extends Pick<DurableFiles, "open" | "rename"> {
  readonly chmod: (path: string, mode: number) => Promise<void>;
  readonly makeDirectory: typeof makeDirectory;
  readonly readFile: (path: string, encoding: "utf8") => Promise<string>;
  readonly readdir: (path: string) => Promise<string[]>;
  readonly rm: (path: string, options: { readonly recursive?: boolean; readonly force: boolean }) => Promise<void>;
}

const MACHINE_FILES: JournalFiles = { chmod, makeDirectory, open, readdir, readFile, rename, rm };

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
const RECORD = "record.json";

/** A keeper's executions on disk, each in a directory that is closed to all other users. */
export class Journal {
  readonly #root: string;
  readonly #files: JournalFiles;

  private constructor(root: string, files: JournalFiles) {
    this.#root = root;
    this.#files = files;
  }

  /** Open the journal below the keeper's directory, and create it if it is missing. */
  static async open(keeperDirectory: string, files = MACHINE_FILES): Promise<Journal> {
    const root = join(keeperDirectory, "executions");
    await files.makeDirectory(root, DIRECTORY_MODE);
    await files.chmod(root, DIRECTORY_MODE);
    return new Journal(root, files);
  }

  directoryOf(id: string): string {
    return join(this.#root, id);
  }

  /**
   * Load all records. Invalid records are logged and left unchanged. Rejects when the disk fails or a file cannot
   * be opened, because the execution of a skipped record would be reported as gone although it runs.
   */
  async load(log: Logger): Promise<readonly Execution[]> {
    const records: Execution[] = [];
    for (const id of (await this.#files.readdir(this.#root)).filter(isExecutionId)) {
      const text = await this.#files.readFile(join(this.#root, id, RECORD), "utf8").catch((error: unknown) => {
        if (errorCode(error) === "ENOENT") return "";
        throw error;
      });
      const record = parseRecord(text);
      if (record?.identity.id === id) records.push(record);
      else log.error({ execution_id: id }, "cannot read the record of an execution; left unchanged");
    }
    return records;
  }

  /** Create the directories of a new execution, and write its record. */
  async create(record: Execution): Promise<void> {
    await this.#files.makeDirectory(join(this.directoryOf(record.identity.id), "run"), DIRECTORY_MODE);
    await this.save(record);
  }

  /**
   * Replace a record. Once this resolves, the new record is on disk. A power failure leaves either the old or the new
   * one.
   */
  async save(record: Execution): Promise<void> {
    const path = join(this.directoryOf(record.identity.id), RECORD);
    await replaceFile(path, formatRecord(record), FILE_MODE, this.#files);
  }

  /** Remove an execution and its output. */
  async remove(id: string): Promise<void> {
    await this.#files.rm(this.directoryOf(id), { recursive: true, force: true });
  }
}
