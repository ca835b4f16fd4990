import { chmod, mkdir, mkdtemp, readdir, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { socketIn } from "./place.ts";
import { chooseSocketDirectory, readySocketDirectory } from "./socket-directory.ts";

const SELF = { kind: "self" } as const;

let root: string;
let long: string;
let temporary: string;

beforeEach(async () => {
  root = await mkdtemp(join(await realpath(tmpdir()), "rollcall-socket-"));
  [long, temporary] = [join(root, "x".repeat(100)), join(root, "t")];
  await Promise.all([mkdir(long), mkdir(temporary)]);
});

afterEach(() => rm(root, { recursive: true, force: true }));

const choose = (dir: string) => chooseSocketDirectory({ dir, runAs: SELF, temporary: [temporary], platform: "linux" });

describe("chooseSocketDirectory()", () => {
  it("should use the server's own directory, for one user only, and leave nothing else in it", async () => {
    expect(await choose(root)).toEqual({ directory: join(root, "socket") });
    expect((await stat(join(root, "socket"))).mode & 0o777).toBe(0o700);
    expect(await readdir(join(root, "socket"))).toEqual([]);
    expect(await choose(root)).toEqual({ directory: join(root, "socket") });
  });

  it("should count bytes, up to the longest path", async () => {
    const rest = 107 - Buffer.byteLength(`${root}//socket/.s.PGSQL.5432`);
    const name = "ü".repeat(Math.floor(rest / 2)) + (rest % 2 === 0 ? "" : "x");
    for (const [dir, fits] of [
      [join(root, name), true],
      [join(root, `${name}x`), false],
    ] as const) {
      await mkdir(dir);
      const { directory } = await choose(dir);
      expect([dir, directory === join(dir, "socket")]).toEqual([dir, fits]);
    }
  });

  it("should create a short directory once when its own path is too long", async () => {
    const { directory } = await choose(long);
    expect(directory).toMatch(new RegExp(`^${temporary}/rollcall-`));
    expect(await choose(long)).toEqual({ directory });
    expect(await readdir(temporary)).toHaveLength(1);
  });

  it.each<[string, (made: string) => Promise<void>]>([
    ["is gone", (made) => rm(made, { recursive: true })],
    ["was opened to others", (made) => chmod(made, 0o755)],
    [
      "is a link",
      async (made) => {
        await rm(made, { recursive: true });
        await symlink(root, made);
      },
    ],
  ])("should use no short directory again that %s", async (what, change) => {
    const { directory } = await choose(long);
    await change(directory ?? "");
    const { directory: next } = await choose(long);
    if (what === "is gone") expect(next).toBe(directory);
    else expect(next).not.toBe(directory);
    expect((await stat(next ?? "")).mode & 0o777).toBe(0o700);
  });

  it("should report why there is none", async () => {
    await rm(temporary, { recursive: true });
    const none = await choose(long);
    expect(none).toMatchObject({ directory: null });
    expect(JSON.stringify(none)).toMatch(/has \d+ bytes; the limit is 107.*ENOENT/);
    expect(await chooseSocketDirectory({ dir: root, runAs: SELF, platform: "win32" })).toEqual({
      directory: null,
      why: "win32 has no Unix sockets",
    });
  });
});

describe("readySocketDirectory()", () => {
  const prepare = (directory: string) =>
    readySocketDirectory(socketIn(directory), { dataDirectory: join(root, "data"), runAs: SELF });

  it("should recreate a removed directory", async () => {
    await prepare(join(root, "again"));
    expect((await stat(join(root, "again"))).mode & 0o777).toBe(0o700);
  });

  it("should refuse a directory that others can enter", async () => {
    await chmod(temporary, 0o755);
    await expect(prepare(temporary)).rejects.toThrow(`${temporary} can be entered by other users`);
  });

  it("should remove only an unrelated process's lock file", async () => {
    const lock = join(temporary, ".s.PGSQL.5432.lock");
    await chmod(temporary, 0o700);
    // Postgres itself removes a lock file whose process is gone. If a lock file names no process, Postgres reports the
    // problem.
    for (const [content, left] of [
      [`${process.pid}\n`, 0],
      ["4194304\n", 1],
      ["what\n", 1],
    ] as const) {
      await writeFile(lock, content);
      await prepare(temporary);
      expect([content, (await readdir(temporary)).length]).toEqual([content, left]);
    }
  });
});
