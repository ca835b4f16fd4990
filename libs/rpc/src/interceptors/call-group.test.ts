import { describe, expect, it } from "@jest/globals";
import { CallGroup, linkSignals } from "./call-group.ts";

describe("CallGroup", () => {
  it("should abort those that are under way, and those that come later", () => {
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
});

describe("linkSignals()", () => {
  it("should abort with whichever is first, and leave nothing behind", () => {
    const group = new CallGroup();
    const caller = new AbortController();
    const { signal } = linkSignals([caller.signal], group);
    expect(group.size).toBe(1);
    caller.abort("left");
    expect(signal.reason).toBe("left");
    expect(group.size).toBe(0);
  });

  it("should abort with the group", () => {
    const group = new CallGroup();
    const { signal } = linkSignals([new AbortController().signal], group);
    group.abort("ending");
    expect(signal.reason).toBe("ending");
  });

  it("should hear nothing more once released", () => {
    const group = new CallGroup();
    const caller = new AbortController();
    const { signal, release } = linkSignals([caller.signal], group);
    release();
    caller.abort("left");
    group.abort("ending");
    expect(signal.aborted).toBe(false);
  });

  it("should not join when a signal was aborted before", () => {
    const group = new CallGroup();
    const { signal } = linkSignals([AbortSignal.abort("early")], group);
    expect(signal.reason).toBe("early");
    expect(group.size).toBe(0);
  });

  it("should link any number of calls without a warning", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    try {
      const group = new CallGroup();
      for (let call = 0; call < 100; call += 1) linkSignals([new AbortController().signal], group);
      // Warnings are emitted on the next tick.
      await new Promise((resolve) => setImmediate(resolve));
      expect(warnings).toEqual([]);
    } finally {
      process.off("warning", onWarning);
    }
  });
});
