import { describe, expect, it } from "@jest/globals";
import { parseAgentPackages } from "./agent-packages.ts";

const HASH = "ab".repeat(32);
const sums = (...names: readonly string[]) => names.map((name) => `${HASH}  ${name}\n`).join("");
const namesIn = (text: string) => parseAgentPackages(text).map(({ name }) => name);

describe("parseAgentPackages()", () => {
  it("should find the agent's packages with their platform, format and digest", () => {
    const text = sums(
      "rollcall-agent_0.1.0_amd64.deb",
      "rollcall-agent-0.1.0-linux-arm64.tar.gz",
      "rollcall_0.1.0_amd64.deb",
      "rollcall-agent-0.1.0-linux-x64.cdx.json",
    );
    expect(parseAgentPackages(text)).toEqual([
      { name: "rollcall-agent_0.1.0_amd64.deb", sha256: HASH, platform: "linux-x64", format: "deb" },
      { name: "rollcall-agent-0.1.0-linux-arm64.tar.gz", sha256: HASH, platform: "linux-arm64", format: "tar.gz" },
    ]);
  });

  it.each([
    "rollcall-agent_../../etc/passwd_amd64.deb",
    "../rollcall-agent_0.1.0_amd64.deb",
    "rollcall-agent_0/1_amd64.deb",
    "rollcall-agent_0.1.0_riscv64.deb",
    "rollcall-agent-0.1.0-darwin-arm64.tar.gz",
    "rollcall-agent_0.1.0_amd64.deb more",
  ])("should leave out %s", (name) => {
    expect(parseAgentPackages(sums(name))).toEqual([]);
  });

  it("should leave out lines without a digest", () => {
    expect(
      parseAgentPackages(`rollcall-agent_0.1.0_amd64.deb\n${HASH.slice(1)}  rollcall-agent_0.1.0_amd64.deb`),
    ).toEqual([]);
  });

  it.each([
    ["0.9.0", "0.10.0"],
    ["0.1.0-rc1", "0.1.1"],
    ["1.9", "1.9.1"],
  ])("should use the higher of two versions: %s and %s", (lower, higher) => {
    const names = [lower, higher].map((version) => `rollcall-agent_${version}_arm64.deb`);
    expect(namesIn(sums(...names))).toEqual([names[1]]);
    expect(namesIn(sums(...names.reverse()))).toEqual([names[0]]);
  });

  it("should read files that name packages as binary, with line ends of any kind", () => {
    expect(namesIn(`${HASH} *rollcall-agent_0.1.0_amd64.deb\r\n`)).toEqual(["rollcall-agent_0.1.0_amd64.deb"]);
  });
});
