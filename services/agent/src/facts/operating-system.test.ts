import { describe, expect, it } from "@jest/globals";
import { parseOsRelease } from "./operating-system.ts";

describe("parseOsRelease()", () => {
  it("should unquote values and skip comments and empty ones", () => {
    const text = `# comment
NAME="Debian \\"GNU\\"/Linux"
ID=debian
PRETTY_NAME='Debian GNU/Linux 12 (bookworm)'
VARIANT=
broken line
`;
    expect([...parseOsRelease(text)]).toEqual([
      ["NAME", 'Debian "GNU"/Linux'],
      ["ID", "debian"],
      ["PRETTY_NAME", "Debian GNU/Linux 12 (bookworm)"],
    ]);
  });
});
