import { execFileSync } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { expand, makeEnvironment, wrongNames } from "./environment.ts";
import { programScript, quote } from "./launch-script.ts";

const FACTS = {
  id: "e1",
  job: "web",
  nodeId: "n1",
  index: 2,
  ports: { http: 8_080 },
  gpuUuids: [],
  defaults: { PATH: "/bin", HOME: "/home/e1" },
  env: {},
  secrets: {},
};

describe("makeEnvironment()", () => {
  it("should let a job replace its own variables, but not those that describe where it runs", () => {
    const env = { PATH: "/opt/bin", ROLLCALL_NODE: "another", PORT_HTTP: "1", CUDA_VISIBLE_DEVICES: "0" };
    expect(makeEnvironment({ ...FACTS, env })).toMatchObject({
      PATH: "/opt/bin",
      HOME: "/home/e1",
      ROLLCALL_NODE: "n1",
      PORT_HTTP: "8080",
      CUDA_VISIBLE_DEVICES: "",
    });
  });
});

describe("expand()", () => {
  const braced = (name: string, more = "") => ["$", "{", name, "}", more].join("");

  it.each([
    ["$A", "1"],
    [braced("A", "b"), "1b"],
    ["$AB", "$AB"],
    ["$$A", "$A"],
    [`$${braced("A")}`, braced("A")],
    ["$$", "$$"],
    ["$NONE", "$NONE"],
    ["$constructor", "$constructor"],
    ["100$", "100$"],
  ])("should expand %s to %s", (word, expanded) => {
    expect(expand(word, { A: "1" })).toBe(expanded);
  });
});

describe("wrongNames()", () => {
  it("should name variables that a shell cannot hold", () => {
    expect(wrongNames({ A: "1", "A-B": "1", "": "1", "A=B": "1", C: "\0" })).toEqual(["A-B", "", "A=B", "C"]);
  });
});

describe("programScript()", () => {
  it("should pass any word and value to the program unchanged", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 20 }).map((one) => one.replaceAll("\0", ""));
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), text, (words, value) => {
        const argv = [process.execPath, "-p", "JSON.stringify([process.argv.slice(1), process.env.A])", "--", ...words];
        const script = programScript({ argv, env: { A: value, PATH: "/usr/bin:/bin" }, directory: "/" });
        const out = execFileSync("/bin/sh", ["-s"], { input: script, stdio: ["pipe", "pipe", "ignore"] });
        expect(JSON.parse(out.toString())).toEqual([words, value]);
      }),
      { numRuns: 15 },
    );
  });

  it("should quote the quotes", () => {
    expect(quote("it's")).toBe("'it'\\''s'");
  });
});
