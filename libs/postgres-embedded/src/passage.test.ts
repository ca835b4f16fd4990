import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { blockedFolder, type Folder, foldersTo, openForPassage } from "./passage.ts";

const USER = { uid: 7, gid: 8 };
const OPEN: Folder = { path: "/", uid: 0, gid: 0, mode: 0o40755 };

describe("blockedFolder()", () => {
  it.each<[string, Partial<Folder>, boolean]>([
    ["open to all", { mode: 0o40711 }, false],
    ["closed to others", { mode: 0o40750 }, true],
    ["readable and closed", { mode: 0o40744 }, true],
    ["its own", { uid: 7, mode: 0o40100 }, false],
    ["its own and closed to itself", { uid: 7, mode: 0o40077 }, true],
    ["its group's", { gid: 8, mode: 0o40710 }, false],
    ["closed to its group, which counts before others", { gid: 8, mode: 0o40701 }, true],
  ])("should look at a folder that is %s", (_, folder, isBlocked) => {
    const last = { ...OPEN, path: "/x", ...folder };
    expect(blockedFolder([OPEN, last], USER)).toBe(isBlocked ? last : null);
  });

  it("should name the first one on the way", () => {
    const [first, second] = ["/a", "/a/b"].map((path) => ({ ...OPEN, path, mode: 0o40700 }));
    expect(blockedFolder([OPEN, first, second] as Folder[], USER)).toBe(first);
  });
});

describe("foldersTo()", () => {
  it("should list all from the root and reflect opened folders", async () => {
    const parent = await mkdtemp(join(await realpath(tmpdir()), "rollcall-passage-"));
    try {
      const closed = (await foldersTo(parent)).at(-1);
      expect(closed).toMatchObject({ path: parent });
      expect((closed?.mode ?? 0) & 0o777).toBe(0o700);
      await openForPassage(parent);
      const folders = await foldersTo(parent);
      expect(folders[0]?.path).toBe("/");
      expect((folders.at(-1)?.mode ?? 0) & 0o777).toBe(0o711);
    } finally {
      await rm(parent, { recursive: true });
    }
  });
});
