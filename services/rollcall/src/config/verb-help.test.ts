import { describe, expect, it } from "@jest/globals";
import { bool, defineKeys, int, text } from "@rollcall/config";
import { formatVerbHelp } from "./verb-help.ts";

const KEYS = defineKeys({
  "A.Port": { schema: int(), default: 7700, flag: "port", doc: "A port." },
  "A.Switch": { schema: bool(), default: true, flag: "switch", doc: "A switch." },
  "A.Secret": {
    schema: text(),
    default: "hidden",
    flag: "a-very-long-name-of-a-flag",
    doc: "A secret.",
    secret: true,
  },
  "A.Plain": { schema: text(), default: "x", doc: "No flag." },
});

const HELP = { usage: "do [options]", description: "Do it.", keys: KEYS, notes: ["And more."] };

describe("formatVerbHelp()", () => {
  it("should print each flag with its meaning, default, key and variable", () => {
    const help = formatVerbHelp(HELP, 0);
    expect(help).toBe(`Usage: rollcall do [options]

Do it.

Options:
  --port VALUE             A port. Default 7700. [A.Port, ROLLCALL_A_PORT]
  --[no-]switch            A switch. Default true. [A.Switch, ROLLCALL_A_SWITCH]
  --a-very-long-name-of-a-flag VALUE
                           A secret. [A.Secret, ROLLCALL_A_SECRET]
  --config FILE            Configuration file (or set ROLLCALL_CONFIG).
  --set KEY=VALUE          Set any key that \`rollcall config list\` shows.
  -h, --help               Print this help.

And more.
`);
  });

  it("should wrap to the width of the terminal, down to a readable minimum", () => {
    for (const [columns, width] of [
      [70, 70],
      [20, 60],
    ] as const) {
      const lines = formatVerbHelp(HELP, columns).split("\n");
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
      expect(lines.some((line) => line.startsWith("  --set KEY=VALUE          Set any key"))).toBe(true);
    }
  });

  it("should wrap notes, and stay within 80 columns by default", () => {
    const help = formatVerbHelp({ ...HELP, notes: ["word ".repeat(40).trim()] }, 0);
    expect(Math.max(...help.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});
