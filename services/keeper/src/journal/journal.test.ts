import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { captureLog } from "@rollcall/testkit/log-capture";
import { MemoryFiles } from "@rollcall/testkit/memory-files";
import { beginExecution } from "../execution/execution-machine.ts";
import { identityOf } from "../testing/keeper-fixture.ts";
import type { Execution } from "./execution-entry.ts";
import { Journal } from "./journal.ts";

const RULES = { stopSignal: "SIGTERM", graceMs: 1_000, maxRunMs: null, stopOnAgentAfterMs: null, check: null };

function recordOf(id: string): Execution {
  const state = beginExecution(RULES);
  return { identity: identityOf({}, { id }), logId: "log", bootId: "boot", state, forgottenWallMs: null };
}

describe("Journal", () => {
  let folder: string;
  let journal: Journal;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "rollcall-journal-"));
    journal = await Journal.open(folder);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("should load what was saved, and report an invalid record", async () => {
    const record = recordOf("e-1");
    await journal.create(record);
    await mkdir(journal.directoryOf("e-2"));
    await writeFile(join(journal.directoryOf("e-2"), "record.json"), "{");
    const { log, lines } = captureLog();
    expect(await journal.load(log)).toMatchObject([record]);
    expect(lines).toMatchObject([{ execution_id: "e-2" }]);
  });

  it("should keep after a power failure what was saved before it", async () => {
    const files = new MemoryFiles();
    const saved = await Journal.open("/keeper", files);
    const record = recordOf("e-1");
    await saved.create(record);
    files.failPower();
    expect(await saved.load(captureLog().log)).toMatchObject([record]);
    for (const forgottenWallMs of [1_000, 2_000]) {
      await saved.save({ ...record, forgottenWallMs });
      files.failPower();
      expect(await saved.load(captureLog().log)).toMatchObject([{ forgottenWallMs }]);
    }
  });

  it("should not skip a record that cannot be read, because its execution may run", async () => {
    await journal.create(recordOf("e-1"));
    // A directory cannot be read as a file, like a file on a failing disk.
    await mkdir(join(journal.directoryOf("e-2"), "record.json"), { recursive: true });
    await expect(journal.load(captureLog().log)).rejects.toMatchObject({ code: "EISDIR" });
  });
});
