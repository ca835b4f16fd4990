import { describe, expect, it } from "@jest/globals";
import { EVENT_TYPES } from "@rollcall/domain";
import { EVENT_TYPE_WORDS } from "./choices.ts";
import { run } from "./testing/run.ts";

describe("the words of options", () => {
  it("should have every type of event, and help should name them", async () => {
    expect(EVENT_TYPE_WORDS).toEqual(EVENT_TYPES);
    const { out } = await run(["events", "--help"]);
    for (const type of EVENT_TYPES) expect(out).toContain(`  ${type}\n`);
  });
});
