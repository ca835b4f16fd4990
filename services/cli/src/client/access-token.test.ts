import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { newContext } from "../contexts/context.ts";
import { createTokenSource } from "./access-token.ts";

const HERE = "http://127.0.0.1:7700";
const RUN_FILE = {
  pid: 1,
  server: "10.0.0.5:7700",
  agents: "10.0.0.5:7701",
  probes: "10.0.0.5:7790",
};

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "rollcall-token-"));
  writeFileSync(join(directory, "admin-token"), "of-up\n");
  writeFileSync(join(directory, "other"), "of-file\n");
  writeFileSync(join(directory, "empty"), "\n");
});
afterAll(() => rmSync(directory, { recursive: true }));

function tokenFor(flags: object, env: Record<string, string>, baseUrl = HERE, dataDirectory = directory) {
  return createTokenSource(flags, shellOf(env), dataDirectory, RUN_FILE).tokenFor(baseUrl);
}

function shellOf(env: Record<string, string>) {
  const interrupted = new AbortController().signal;
  return { env, cwd: directory, wallMs: () => 0, interrupted };
}

describe("createTokenSource()", () => {
  it("should take the first of: flag, file flag, environment, file of the environment, file of up", () => {
    const env = { ROLLCALL_TOKEN: "of-env", ROLLCALL_TOKEN_FILE: "other" };
    expect(tokenFor({ token: "of-flag", tokenFile: "other" }, env)).toBe("of-flag");
    expect(tokenFor({ tokenFile: "other" }, env)).toBe("of-file");
    expect(tokenFor({}, env)).toBe("of-env");
    expect(tokenFor({}, { ROLLCALL_TOKEN_FILE: "other" })).toBe("of-file");
    expect(tokenFor({}, {})).toBe("of-up");
  });

  it("should not use another token instead of an empty one", () => {
    expect(() => tokenFor({ token: " " }, {})).toThrow("--token is empty");
    expect(() => tokenFor({ tokenFile: "" }, {})).toThrow("--token-file is empty");
    expect(tokenFor({}, { ROLLCALL_TOKEN: "" })).toBe("of-up");
  });

  it("should send the token of up to this machine and to the server of the run file only", () => {
    expect(tokenFor({}, {}, "http://10.0.0.5:7700")).toBe("of-up");
    expect(tokenFor({}, {}, "http://10.0.0.6:7700")).toBeNull();
    expect(tokenFor({ token: "of-flag" }, {}, "http://10.0.0.6:7700")).toBe("of-flag");
  });

  it("should send a context's token only to its addresses, and prefer it to the environment's if it was named", () => {
    const context = newContext({ name: "prod", server: "10.0.0.7:7700", token: "of-context" });
    const there = "http://10.0.0.7:7700";
    const find = (isNamed: boolean, env: Record<string, string>, baseUrl = there) => {
      const chosen = { context, isNamed, save: async () => {} };
      const from = { chosen, addresses: [there] };
      return createTokenSource({}, shellOf(env), directory, RUN_FILE, from).tokenFor(baseUrl);
    };
    const env = { ROLLCALL_TOKEN: "of-env" };
    expect(find(false, {})).toBe("of-context");
    expect(find(false, env)).toBe("of-env");
    expect(find(true, env)).toBe("of-context");
    expect(find(true, {}, "http://10.0.0.8:7700")).toBeNull();
    expect(find(true, {}, HERE)).toBe("of-up");
  });

  it("should find no token if up never ran", () => {
    expect(tokenFor({}, {}, HERE, join(directory, "nowhere"))).toBeNull();
  });

  it("should fail if the file that the user named is missing", () => {
    expect(() => tokenFor({ tokenFile: "missing" }, {})).toThrow(
      /^cannot read the access token in .*missing: no such file or directory$/,
    );
    expect(() => tokenFor({ tokenFile: "empty" }, {})).toThrow(/^no access token in .*empty$/);
    expect(() => tokenFor({ tokenFile: "." }, {})).toThrow(
      /^cannot read the access token in .*: illegal operation on a directory$/,
    );
  });
});
