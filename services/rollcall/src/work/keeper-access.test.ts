import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { workKeys } from "@rollcall/agent";
import { loadConfig } from "@rollcall/config";
import { eventually } from "@rollcall/testkit/time";
import { KEEPER_LOG, keeperAccess } from "./keeper-access.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "rollcall-keeper-access-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it("should write to the keeper's log why a keeper could not start", async () => {
  const loaded = loadConfig({ keys: workKeys, flags: {} });
  if (!loaded.ok) throw new Error("the defaults are invalid");
  const broken = { execPath: "/bin/sh", execArgv: ["-c", "echo it cannot start >&2"], argv: [], env: {} };
  const { start } = keeperAccess(loaded.config.values, directory, broken as unknown as NodeJS.Process);
  await start?.();
  await eventually(async () => {
    expect(await readFile(join(directory, "keeper", KEEPER_LOG), "utf8")).toBe("it cannot start\n");
  });
});
