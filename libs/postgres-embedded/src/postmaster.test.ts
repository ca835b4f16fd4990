import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { inspectProcess, readPostmasterFile } from "./postmaster.ts";

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "rollcall-postmaster-"));
});

afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

describe("readPostmasterFile()", () => {
  it("should return null without a file", async () => {
    expect(await readPostmasterFile(dir)).toBeNull();
  });

  it.each([
    [
      "a running server",
      "123\n/d\n1\n5432\n\n127.0.0.1\n1 2\nready   \n",
      { pid: 123, place: { host: "127.0.0.1", port: 5432 }, status: "ready" },
    ],
    [
      "a server with a socket alone",
      "123\n/d\n1\n5432\n/run/x y\n\n1 2\nready   \n",
      { pid: 123, place: { host: "/run/x y", port: 5432 }, status: "ready" },
    ],
    ["its first moments", "123\n/d\n1\n5432\n", { pid: 123, place: null, status: "" }],
    ["half a file", "123", null],
    ["a single-user backend", "-123\n/d\n1\n0\n", null],
    ["the first process", "1\n/d\n1\n5432\n", null],
    ["garbage", "what\never\n\n", null],
    ["nothing", "", null],
  ])("should read that of %s", async (_, content, expected) => {
    await writeFile(join(dir, "postmaster.pid"), content);
    expect(await readPostmasterFile(dir)).toEqual(expected);
  });
});

describe("inspectProcess()", () => {
  it("should not report this process as Postgres, and a free id as none", async () => {
    expect(await inspectProcess(process.pid, dir)).toBe("unrelated");
    expect(await inspectProcess(4_194_304, dir)).toBe("none");
  });
});
