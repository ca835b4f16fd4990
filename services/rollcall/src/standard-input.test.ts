import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { runInto } from "./testing/rollcall-process.ts";

const nowhere = openSync("/dev/null", "w");
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-input-"));
});
afterAll(() => {
  closeSync(nowhere);
  rmSync(folder, { recursive: true, force: true });
});

/** Run a command with a file as its standard input, without a server. */
function reading(path: string, how: "<" | "cat", words: string) {
  const script = how === "cat" ? 'cat "$0" | exec "$@"' : 'exec "$@" < "$0"';
  const env = { HOME: folder, ROLLCALL_SERVER: "127.0.0.1:1", ROLLCALL_TOKEN: "x" };
  return runInto(nowhere, words.split(" "), { env, within: ["sh", "-c", script, path] });
}

describe("standard input", () => {
  it.each(["<", "cat"] as const)("should be read whole, however long it is: %s", async (how) => {
    const path = join(folder, "labels.yaml");
    const labels = Array.from({ length: 3_000 }, (_, at) => `{kind: NodeLabels, name: n${at}, spec: {labels: {a: b}}}`);
    writeFileSync(path, labels.join("\n---\n"));
    const { code, err } = await reading(path, how, "apply --dry-run -f -");
    expect([code, err]).toEqual([2, "the files declare 3000 objects; the limit is 500 at once\n"]);
  });

  it("should be refused beyond its limit, and never cut", async () => {
    const path = join(folder, "large.yaml");
    writeFileSync(path, "#".repeat(16_777_217));
    for (const words of ["apply -f -", "job run -", "diff -f -"]) {
      expect(await reading(path, "<", words)).toEqual({
        code: 2,
        err: "standard input is larger than 16 MiB; split it\n",
      });
    }
  });
});
