import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { startEmbeddedPostgres } from "../embedded-postgres.ts";
import { beginRestore, refuseHalfRestored } from "./restore-mark.ts";

const ARCHIVE = "/backups/a.backup";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(await realpath(tmpdir()), "rollcall-mark-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function leaveData(version: string, place = "data"): Promise<void> {
  await mkdir(join(dir, place), { recursive: true });
  await writeFile(join(dir, place, "PG_VERSION"), `${version}\n`);
}

const versionOf = async (place: string) => (await readFile(join(dir, place, "PG_VERSION"), "utf8")).trim();

describe("beginRestore()", () => {
  it("should refuse other uses of the directory until the restore is done", async () => {
    const begun = await beginRestore(dir, { archive: ARCHIVE, replace: false });
    expect(begun.setAside).toBeNull();
    await expect(startEmbeddedPostgres({ dir, log: silentLogger })).rejects.toThrow(
      /a restore of \/backups\/a\.backup was interrupted; the store is either unchanged or .* or remove /,
    );
    expect(existsSync(join(dir, "data"))).toBe(false);
    await begun.finish();
    await refuseHalfRestored(dir);
  });

  it("should move another version's data aside with replace, and move it back", async () => {
    await leaveData("17");
    const kept = await beginRestore(dir, { archive: ARCHIVE, replace: false });
    expect([kept.setAside, await versionOf("data")]).toEqual([null, "17"]);
    await kept.undo();
    const moved = await beginRestore(dir, { archive: ARCHIVE, replace: true });
    expect([moved.setAside, await versionOf("data-17")]).toEqual([join(dir, "data-17"), "17"]);
    await leaveData("18");
    await moved.undo();
    expect([await versionOf("data"), existsSync(join(dir, "data-17"))]).toEqual(["17", false]);
    await refuseHalfRestored(dir);
  });

  it("should leave data of this version where it is", async () => {
    await leaveData("18");
    const begun = await beginRestore(dir, { archive: ARCHIVE, replace: true });
    await begun.undo();
    expect([begun.setAside, await versionOf("data")]).toEqual([null, "18"]);
    await refuseHalfRestored(dir);
  });

  it.each([
    ["before the new data was made", false],
    ["with half of the new data", true],
  ])("should continue, if requested, after a restore that ended %s, and know the oldest data", async (_, isMade) => {
    await leaveData("17");
    await beginRestore(dir, { archive: ARCHIVE, replace: true });
    if (isMade) await leaveData("18");
    const refusal = /was interrupted: run `rollcall restore .* --replace` .*; or go back to the data .*data-17: remove/;
    await expect(refuseHalfRestored(dir)).rejects.toThrow(refusal);
    await expect(beginRestore(dir, { archive: "/other", replace: false })).rejects.toThrow(refusal);
    const again = await beginRestore(dir, { archive: "/other", replace: true });
    expect(again.setAside).toBe(join(dir, "data-17"));
    await again.undo();
    expect(await versionOf("data")).toBe("17");
  });

  it("should begin again after a restore that was interrupted before moving anything", async () => {
    await leaveData("17");
    await beginRestore(dir, { archive: ARCHIVE, replace: false });
    const again = await beginRestore(dir, { archive: ARCHIVE, replace: true });
    expect([again.setAside, await versionOf("data-17")]).toEqual([join(dir, "data-17"), "17"]);
  });

  it("should refuse a path that is taken, without leaving a mark", async () => {
    await leaveData("17");
    await leaveData("17", "data-17");
    await expect(beginRestore(dir, { archive: ARCHIVE, replace: true })).rejects.toThrow("data-17 already exists");
    await refuseHalfRestored(dir);
    expect(await versionOf("data")).toBe("17");
  });

  it.each(["", "null", "{}", '{"archive":1,"setAside":null}'])("should refuse a mark that reads %j", async (text) => {
    await writeFile(join(dir, "restoring.json"), text);
    await expect(refuseHalfRestored(dir)).rejects.toThrow("cannot be read");
  });
});
