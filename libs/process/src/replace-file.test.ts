import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { errorCode } from "./error-code.ts";
import { createFile, replaceFile } from "./replace-file.ts";
import { isSystemError, systemErrorText, systemErrorWords } from "./system-error.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "rollcall-replace-file-"));
});
afterEach(() => rm(dir, { recursive: true }));

describe("replaceFile()", () => {
  it("should replace a file, with access only for its owner", async () => {
    const path = join(dir, "file");
    await replaceFile(path, "one", 0o600);
    await replaceFile(path, Buffer.from("two"), 0o600);
    expect([await readFile(path, "utf8"), (await stat(path)).mode & 0o777]).toEqual(["two", 0o600]);
    expect(await readdir(dir)).toEqual(["file"]);
  });

  it("should leave no file when it fails", async () => {
    // A file cannot replace a directory.
    const error = await replaceFile(dir, "x", 0o600).then(() => null, errorCode);
    expect(error).toMatch(/^E(ISDIR|EXIST|NOTEMPTY)$/);
    expect(await readdir(dir)).toEqual([]);
    // The temporary file would be in the same directory.
    expect((await readdir(dirname(dir))).filter((name) => name.includes(basename(dir)))).toEqual([basename(dir)]);
  });
});

describe("createFile()", () => {
  it("should not overwrite an existing file", async () => {
    await createFile(join(dir, "once"), "first", 0o600);
    expect(await createFile(join(dir, "once"), "second", 0o600).then(() => null, errorCode)).toBe("EEXIST");
    expect(await readFile(join(dir, "once"), "utf8")).toBe("first");
    expect(await readdir(dir)).toEqual(["once"]);
  });
});

describe("systemErrorText()", () => {
  it("should be one sentence with the file and the cause", async () => {
    const path = join(dir, "absent");
    const error = await readFile(path).then(
      () => null,
      (it: unknown) => it,
    );
    expect(isSystemError(error) && systemErrorText(error)).toBe(`cannot open ${path}: no such file or directory`);
    expect(systemErrorWords(Object.assign(new Error("write EPIPE"), { code: "EPIPE", errno: -32 }))).toBe(
      "its reader has closed the pipe",
    );
    expect(systemErrorWords(new Error("something else"))).toBe("something else");
  });
});
