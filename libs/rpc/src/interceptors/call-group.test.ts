import { describe, expect, it } from "@jest/globals";
import { CallGroup } from "./call-group.ts";

describe("CallGroup", () => {
  it("should abort calls in progress, and those that join later", () => {
    const group = new CallGroup();
    const [early, gone, late] = [0, 1, 2].map(() => new AbortController());
    if (!early || !gone || !late) throw new Error("three controllers were made");
    group.join(early);
    group.join(gone);
    group.leave(gone);
    group.abort("first");
    group.abort("second");
    group.join(late);
    expect(early.signal.reason).toBe("first");
    expect(late.signal.reason).toBe("first");
    expect(gone.signal.aborted).toBe(false);
    expect(group.size).toBe(0);
  });

  it("should keep nothing of a call that had ended before", () => {
    const group = new CallGroup();
    const call = new AbortController();
    call.abort("left");
    group.join(call);
    expect(group.size).toBe(0);
  });
});
