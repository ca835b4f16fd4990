import { describe, expect, it } from "@jest/globals";
import { runDrill } from "./drill.ts";

const LIMIT_MS = 840_000;

// Runs the complete drill with two seconds for each attack. It does not evaluate times, because the machine
// may be busy. `make drill NAME=hostile` takes five seconds for each attack and evaluates times.
describe("the drill of hostile peers", () => {
  it("should let no well-behaved agent and no operator notice", async () => {
    expect(await runDrill(["hostile", "--no-clock"], LIMIT_MS)).toContain("PASSED: 50 agents");
  });
});
