import { describe, expect, it } from "@jest/globals";
import { OtherLeases } from "./other-leases.ts";

const TIMING = { renewEveryMs: 2_000, expiryMs: 10_000 };
const OTHER = { name: "brake", instance: "h2", counter: 7 };

function lease(instance: string, counter: number, name = instance) {
  return { name, instance, counter };
}

/** Read the same leases at each of these times, without delay. Returns the result of the last read. */
function readAt(others: OtherLeases, times: readonly number[], leases = [OTHER]) {
  return times.map((ms) => others.expiredAmong(leases, { askedAtMs: ms, answeredAtMs: ms }, true)).at(-1);
}

describe("OtherLeases.expiredAmong()", () => {
  it.each([
    [9_999, []],
    [10_000, [OTHER]],
  ])("should report a counter that stood still for %d ms: %j", (lastMs, expired) => {
    const others = new OtherLeases("h1", "keeper", TIMING);
    expect(readAt(others, [0, 2_000, 4_000, 6_000, 8_000, lastMs])).toEqual(expired);
  });

  it("should leave out its own leases, and those that move", () => {
    const others = new OtherLeases("h1", "keeper", TIMING);
    const expired = [0, 2_000, 4_000, 6_000, 8_000, 10_000].map((ms) => {
      const leases = [lease("h1", 1), lease("h1", 1, "brake"), lease("h2", 1), lease("h3", ms)];
      return others.expiredAmong(leases, { askedAtMs: ms, answeredAtMs: ms }, true);
    });
    expect(expired.at(-1)).toEqual([lease("h2", 1)]);
  });

  it("should distinguish the leases of one process, and the holders of one name", () => {
    const others = new OtherLeases("h1", "keeper", TIMING);
    readAt(others, [0, 2_000, 4_000, 6_000], [lease("h2", 7, "brake")]);
    expect(readAt(others, [8_000, 10_000], [lease("h3", 7, "brake")])).toEqual([]);
    expect(readAt(others, [12_000], [lease("h2", 7), lease("h3", 7, "brake")])).toEqual([]);
    expect(readAt(others, [14_000, 16_000, 18_000], [lease("h2", 7), lease("h3", 7, "brake")])).toEqual([
      lease("h3", 7, "brake"),
    ]);
  });

  it.each([
    [1_000, [OTHER]],
    [1_001, []],
  ])("should count a read that took %d ms: %j", (tookMs, expired) => {
    const others = new OtherLeases("h1", "keeper", TIMING);
    readAt(others, [0, 2_000, 4_000, 6_000, 8_000]);
    const read = { askedAtMs: 10_000, answeredAtMs: 10_000 + tookMs };
    expect(others.expiredAmong([OTHER], read, true)).toEqual(expired);
  });

  it("should count from when it asked", () => {
    const others = new OtherLeases("h1", "keeper", TIMING);
    const read = (ms: number) => others.expiredAmong([OTHER], { askedAtMs: ms, answeredAtMs: ms + 900 }, true);
    expect([0, 3_000, 6_000, 9_000, 9_999].flatMap(read)).toEqual([]);
    expect(read(10_000)).toEqual([OTHER]);
  });

  it("should report nothing while the reader itself may be cut off", () => {
    const others = new OtherLeases("h1", "keeper", TIMING);
    readAt(others, [0, 2_000, 4_000, 6_000, 8_000]);
    expect(others.expiredAmong([OTHER], { askedAtMs: 10_000, answeredAtMs: 10_000 }, false)).toEqual([]);
    expect(readAt(others, [12_000])).toEqual([]);
  });

  it.each([
    ["keeper", 4_000, [OTHER]],
    ["keeper", 4_001, []],
    ["contender", 6_000, [OTHER]],
    ["contender", 6_001, []],
  ] as const)("should detect a gap for a %s: %d ms, %j", (role, gapMs, expired) => {
    const others = new OtherLeases("h1", role, TIMING);
    expect(readAt(others, [0, 10_000 - gapMs - 3_999, 10_000 - gapMs, 10_000])).toEqual(expired);
  });

  it("should keep every gap below the expiry", () => {
    const others = new OtherLeases("h1", "contender", { renewEveryMs: 5_000, expiryMs: 10_000 });
    expect(readAt(others, [0, 9_999, 10_000])).toEqual([OTHER]);
    const gapped = new OtherLeases("h1", "contender", { renewEveryMs: 5_000, expiryMs: 10_000 });
    expect(readAt(gapped, [0, 10_000])).toEqual([]);
  });
});
