import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { JoinTokenError, joinTokenSource } from "./join-token.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "rollcall-join-token-"));
});
afterAll(() => rm(directory, { recursive: true }));

describe("joinTokenSource()", () => {
  it("should return none if none was given", async () => {
    expect(await joinTokenSource({ value: undefined, file: undefined })()).toBe("");
  });

  it("should prefer the value to the file", async () => {
    expect(await joinTokenSource({ value: " rcj_a ", file: "/nowhere" })()).toBe("rcj_a");
  });

  it("should read the file each time", async () => {
    const file = join(directory, "rotating");
    const source = joinTokenSource({ value: undefined, file });
    await writeFile(file, "rcj_first\n");
    expect(await source()).toBe("rcj_first");
    await writeFile(file, "rcj_second");
    expect(await source()).toBe("rcj_second");
  });

  it("should report a missing or empty file", async () => {
    const missing = joinTokenSource({ value: undefined, file: join(directory, "missing") });
    await expect(missing()).rejects.toThrow(JoinTokenError);
    await expect(missing()).rejects.toThrow(/missing cannot be read; write the token there/);
    const file = join(directory, "empty");
    await writeFile(file, "\n");
    await expect(joinTokenSource({ value: undefined, file })()).rejects.toThrow(/is empty/);
  });
});
