import { describe, expect, it } from "@jest/globals";
import { describeMachineTime, parseMachineTime, readMachineTime } from "./machine-time.ts";

const stat = (line: string): string => `${line}\ncpu0 1 2 3\nintr 5\n`;

describe("parseMachineTime()", () => {
  it("should add up the columns, without those of guests", () => {
    expect(parseMachineTime(stat("cpu  10 20 30 400 50 6 7 80 1000 1000"))).toEqual({
      total: 603,
      idle: 450,
      stolen: 80,
    });
  });

  it("should return zeros for a text without the line", () => {
    expect(parseMachineTime("")).toEqual({ total: 0, idle: 0, stolen: 0 });
  });
});

describe("describeMachineTime()", () => {
  it("should report the share of busy time that the host took", () => {
    const text = describeMachineTime({ total: 0, idle: 0, stolen: 0 }, { total: 1_000, idle: 500, stolen: 100 });
    expect(text).toMatch(/^\d+ processors, 50 % busy; the host ran others for 20 % of that time$/);
  });

  it("should report only the processors where the kernel reports no times", () => {
    const none = parseMachineTime("");
    expect(describeMachineTime(none, none)).toMatch(/^\d+ processors$/);
  });

  it("should read this machine's times", () => {
    const before = readMachineTime();
    expect(readMachineTime().total).toBeGreaterThanOrEqual(before.total);
  });
});
