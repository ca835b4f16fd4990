import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { LastKnown } from "./last-known.ts";

const AT_MS = 1_700_000_000_000;

describe("LastKnown", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "rollcall-last-known-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("should write after a failed write, so that the values survive a restart", async () => {
    const state = join(folder, "state");
    const before = new LastKnown(state, () => AT_MS);
    await before.take("disk", "disk_bytes", { kind: "known", value: 7 });
    // The directory does not exist yet, so nothing can be written.
    await before.save();
    await mkdir(state);
    await before.save();
    const after = new LastKnown(state, () => AT_MS + 1);
    expect(await after.take("disk", "disk_bytes", { kind: "unknown", reason: "stuck" })).toEqual({
      value: 7,
      unknown: { fact: "disk_bytes", reason: "stuck", knownAtMs: AT_MS },
    });
  });
});
