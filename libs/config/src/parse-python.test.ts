import { describe, expect, it } from "@jest/globals";
import { parsePython } from "./parse-python.ts";

const valuesOf = (text: string) => Object.fromEntries(parsePython(text).map(({ name, value }) => [name, value]));

describe("parsePython()", () => {
  it.each([
    ["A = 5", "5"],
    ["A: int = 1_000", "1000"],
    ["A = -0.25  # a comment", "-0.25"],
    ["A = 'x#y'", "x#y"],
    ['A: str = "a\\"b\\n"', 'a"b\n'],
    ["A = True", "true"],
    ["A: bool=False", "false"],
    ["A = None", ""],
    ["A: list[str] = ['a:b', \"c,d\"]", ["a:b", "c,d"]],
    ["A = [\n  'a',  # one\n  'b',\n]", ["a", "b"]],
    ["A = ()", []],
    ["A: dict[str, int] = {}", undefined],
    ["A = int(os.environ.get('X', 5))", undefined],
    ["A = 2 * 3", undefined],
    ["A = f'{x}'", undefined],
    ["A = LogLevel.INFO", undefined],
    ["A = 'a' + 'b'", undefined],
    ["A = [x for x in y]", undefined],
  ] as const)("should read %j", (text, value) => {
    expect(valuesOf(text)).toEqual({ A: value });
  });

  it("should skip everything else and report line numbers", () => {
    const text = `"""Host.

HEARTBEAT = 3
"""
from kohakuengine import Config
import os

if os.name == "nt":
    A = 1

def config_gen():
    B = 2
    return Config.from_globals()

C = os.environ.get(
    "D = 5",
)
E = 5
F == 6
`;
    expect(parsePython(text).map(({ name, line }) => [name, line])).toEqual([
      ["C", 15],
      ["E", 18],
    ]);
  });

  it("should survive malicious input", () => {
    for (const text of [
      `A = ${"[".repeat(60_000)}`,
      `A = "${"\\".repeat(60_000)}`,
      `A = '''${"x\n".repeat(30_000)}`,
      "=".repeat(60_000),
    ]) {
      expect(parsePython(text).length).toBeLessThanOrEqual(1);
    }
    expect(valuesOf(`A = ${"[".repeat(20)}1${"]".repeat(20)}`)).toEqual({ A: undefined });
  });
});
