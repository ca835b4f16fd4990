import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ManualClock, refusalOf } from "@rollcall/testkit";
import { PendingChanges } from "./pending-changes.ts";

const MOST = 3;
const { signal } = new AbortController();

function pendingOf(count: number): PendingChanges<number> {
  const pending = new PendingChanges<number>(new ManualClock(), MOST);
  for (let n = 0; n < count; n += 1) pending.put(`job-${n}`, n);
  return pending;
}

describe("PendingChanges", () => {
  it("should keep as many changes as allowed, each in its latest version", async () => {
    const pending = pendingOf(MOST);
    for (let again = 0; again < 10; again += 1) pending.put("job-0", again);
    expect(await pending.take(1_000, signal)).toEqual([9, 1, 2]);
  });

  it("should refuse a watcher that is further behind", async () => {
    expect(await refusalOf(pendingOf(MOST + 1).take(1_000, signal))).toMatchObject({
      code: Code.ResourceExhausted,
      reason: "WATCHER_TOO_SLOW",
    });
  });
});
