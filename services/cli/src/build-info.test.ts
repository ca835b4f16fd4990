import { describe, expect, it } from "@jest/globals";
import { parseBuildInfo, versionText } from "./build-info.ts";

const BUILD = {
  version: "1.2.3",
  commit: "0123456789abcdef0123456789abcdef01234567+changes",
  commitTime: "2026-11-23T10:00:00.000Z",
  build: "rollcall-agent-linux-x64",
};

describe("versionText()", () => {
  it("should show the commit and the build", () => {
    expect(versionText(BUILD, ["Node.js 24.0.0"])).toBe(
      "rollcall 1.2.3 (commit 0123456789ab+changes of 2026-11-23, build rollcall-agent-linux-x64, Node.js 24.0.0)",
    );
  });

  it("should leave out unknown parts", () => {
    expect(versionText({ version: "1.2.3" })).toBe("rollcall 1.2.3");
    expect(versionText({ version: "1.2.3", commit: "0123456789abcdef" })).toBe("rollcall 1.2.3 (commit 0123456789ab)");
  });
});

describe("parseBuildInfo()", () => {
  it("should read what the bundle writes", () => {
    expect(parseBuildInfo(JSON.stringify({ type: "module", ...BUILD }))).toEqual(BUILD);
  });

  it.each(["null", "{}", '{"version": 1}'])("should accept missing fields: %s", (text) => {
    expect(parseBuildInfo(text)).toEqual({ version: "0.0.0" });
  });
});
