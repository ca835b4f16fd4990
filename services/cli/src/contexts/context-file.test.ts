import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { readContexts } from "./context-file.ts";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "rollcall-contexts-"));
  await mkdir(join(home, ".config/rollcall"), { recursive: true });
});
afterEach(() => rm(home, { recursive: true }));

describe("readContexts()", () => {
  it.each([
    ["a time", '"2026-01-01T00:00:00Z"', Date.UTC(2026, 0, 1)],
    // The token is then renewed before its next use.
    ["no time", "null", 0],
    ["something that is not a time", '"soon"', 0],
  ])("should read when a login expires: %s", async (_what, text, expiresAtMs) => {
    const oidc = `{ issuer: "https://issuer", client_id: cli, expires_at: ${text} }`;
    await writeFile(join(home, ".config/rollcall/config.yaml"), `contexts: { one: { oidc: ${oidc} } }\n`);
    const { contexts } = await readContexts({ env: {}, home });
    expect(contexts).toMatchObject([{ name: "one", oidc: { clientId: "cli", expiresAtMs } }]);
  });
});
