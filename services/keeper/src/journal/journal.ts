import { randomBytes } from "node:crypto";
import { chmod, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, type Logger, makeDirectory } from "@rollcall/process";
import { type ExecutionRecord, formatRecord, isExecutionId, parseRecord } from "./execution-record.ts";

const DIRECTORY_MODE = 0o700;
const RECORD = "record.json";

/** The executions of a keeper on its disk, each with a directory that is closed to all other users. */
export class Journal {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /** Open the journal below the keeper's directory, made when it is missing. */
  static async open(keeperDirectory: string): Promise<Journal> {
    const root = join(keeperDirectory, "executions");
    await makeDirectory(root, DIRECTORY_MODE);
    await chmod(root, DIRECTORY_MODE);
    return new Journal(root);
  }

  directoryOf(id: string): string {
    return join(this.#root, id);
  }

  /**
   * All records. One that makes no sense is logged and left where it is. Rejects when the disk fails, or no file can be
   * opened: an execution whose record could not be read would be reported as gone although it runs.
   */
  async load(log: Logger): Promise<readonly ExecutionRecord[]> {
    const records: ExecutionRecord[] = [];
    for (const id of (await readdir(this.#root)).filter(isExecutionId)) {
      const text = await readFile(join(this.#root, id, RECORD), "utf8").catch((error: unknown) => {
        if (errorCode(error) === "ENOENT") return "";
        throw error;
      });
      const record = parseRecord(text);
      if (record?.identity.id === id) records.push(record);
      else log.error({ execution_id: id }, "record of an execution cannot be read, it is left alone");
    }
    return records;
  }

  /** Make the directories of a new execution, and write its record. */
  async create(record: ExecutionRecord): Promise<void> {
    await makeDirectory(join(this.directoryOf(record.identity.id), "run"), DIRECTORY_MODE);
    await this.save(record);
  }

  /** Replace a record: a crash leaves the old one or the new one. It is on the disk once this resolves. */
  async save(record: ExecutionRecord): Promise<void> {
    const path = join(this.directoryOf(record.identity.id), RECORD);
    const temporary = `${path}.${randomBytes(4).toString("hex")}`;
    try {
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(formatRecord(record));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Remove an execution with its output. */
  async remove(id: string): Promise<void> {
    await rm(this.directoryOf(id), { recursive: true, force: true });
  }
}
