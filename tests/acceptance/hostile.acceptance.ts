import { describe, expect, it } from "@jest/globals";
import { runDrill } from "./drill.ts";

const LIMIT_MS = 840_000;

// All of it, but not judged by the clock, since the machine may be busy, and so with two seconds of each attack.
// `make drill NAME=hostile` takes five, and judges that as well.
describe("the drill of hostile peers", () => {
  it("should let no well-behaved agent and no operator notice", async () => {
    expect(await runDrill(["hostile", "--no-clock"], LIMIT_MS)).toContain("PASSED: 50 agents");
  });
});
