import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { EXAMPLES } from "../../services/cli/src/help/examples.ts";
import { attempt, useCommandFiles } from "./support/command-words.ts";

const files = useCommandFiles();

/** Split a line into words. A word in '...' can contain blanks. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}

describe("the examples of help", () => {
  it.each(Object.values(EXAMPLES).flat())("should be understood: %s", async (line) => {
    const { folder } = files;
    mkdirSync(join(folder, "state"), { recursive: true });
    const object = "{kind: NodeLabels, name: n1, spec: {labels: {rack: r1}}}";
    for (const name of ["cluster.yaml", "state/labels.yaml"]) writeFileSync(join(folder, name), object);
    writeFileSync(join(folder, "web.yaml"), "name: x\ntype: batch\nprocess: {command: [x]}\n");
    writeFileSync(join(folder, "bacalhau.yaml"), "");
    writeFileSync(join(folder, "token"), "rc_0123456789ab_x\n");
    const { err } = await attempt(folder, wordsOf(line), { interrupted: AbortSignal.timeout(5_000) });
    expect(err).not.toMatch(/^error: |cannot use '|Usage:|cannot be combined|requires |cannot read/m);
  });
});
