import { open, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { endOf, type OutputFile, type OutputRules, planAppend, planRead } from "./output-plan.ts";

/** The streams of an execution. */
export type StreamName = "stdout" | "stderr";

/** A piece of a stream. */
export interface Piece {
  readonly offset: number;
  readonly data: Uint8Array;
}

const FILE_MODE = 0o600;
const DIGITS = 16;

/** The files of one stream of output, in the execution's directory. Writes must not overlap. */
export class OutputStore {
  readonly #directory: string;
  readonly #name: StreamName;
  readonly #rules: OutputRules;
  #files: readonly OutputFile[];

  private constructor(directory: string, name: StreamName, rules: OutputRules, files: readonly OutputFile[]) {
    this.#directory = directory;
    this.#name = name;
    this.#rules = rules;
    this.#files = files;
  }

  /** Find what earlier keepers have written. */
  static async open(directory: string, name: StreamName, rules: OutputRules): Promise<OutputStore> {
    const names = (await readdir(directory)).filter((one) => one.startsWith(`${name}-`)).sort();
    const files = await Promise.all(
      names.map(async (one) => ({
        start: Number.parseInt(one.slice(name.length + 1), 10),
        bytes: (await stat(join(directory, one))).size,
      })),
    );
    return new OutputStore(directory, name, rules, files);
  }

  get end(): number {
    return endOf(this.#files);
  }

  async append(chunk: Uint8Array): Promise<void> {
    const { files, actions } = planAppend(this.#files, chunk.length, this.#rules);
    for (const action of actions) {
      const path = this.#path(action.start);
      if (action.kind === "remove") await rm(path, { force: true });
      else await writeFile(path, chunk.subarray(action.from, action.to), { flag: "a", mode: FILE_MODE });
    }
    this.#files = files;
  }

  /** Read from an offset on; at the end, an empty piece. */
  async read(offset: number, limitBytes: number): Promise<Piece> {
    const plan = planRead(this.#files, offset, limitBytes);
    if (plan === null) return { offset: Math.min(offset, this.end), data: new Uint8Array() };
    const data = Buffer.alloc(plan.bytes);
    const file = await open(this.#path(plan.start), "r");
    try {
      const { bytesRead } = await file.read(data, 0, plan.bytes, plan.position);
      return { offset: plan.start + plan.position, data: data.subarray(0, bytesRead) };
    } finally {
      await file.close();
    }
  }

  #path(start: number): string {
    return join(this.#directory, `${this.#name}-${String(start).padStart(DIGITS, "0")}`);
  }
}
