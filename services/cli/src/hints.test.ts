import { describe, expect, it } from "@jest/globals";
import { obstacleRemedy, reasonNamed, refusalHint } from "./hints.ts";

describe("refusalHint()", () => {
  const cases: readonly [string, Record<string, string>, string | null][] = [
    [
      "NODE_NOT_FOUND",
      { node: "n1" },
      "`rollcall node list` shows all nodes; `rollcall node list --deleted` those that are gone",
    ],
    ["NODE_BANNED", { node: "n1" }, "`rollcall node unban n1` lifts the ban"],
    [
      "LABEL_NOT_SET_BY_OPERATOR",
      { node: "n1", labels: "rack,zone" },
      "`rollcall node label n1 rack=VALUE` overrides it",
    ],
    ["BRAKE_NOT_FROZEN", { group: "cluster", mode: "NORMAL" }, null],
    [
      "BRAKE_NOT_FROZEN",
      { group: "cluster", mode: "HALTED" },
      "`rollcall brake release --now` releases all pending reactions",
    ],
    [
      "BRAKE_NOT_FROZEN",
      { group: "zone=a", mode: "LIMITED" },
      "`rollcall brake release --now --group zone=a` releases all pending reactions",
    ],
    ["NODE_ALREADY_APPROVED", { node: "n1" }, null],
    ["REASON_OF_A_NEWER_RELEASE", {}, null],
  ];
  it.each(cases)("should name the command for %s with %j", (reason, details, hint) => {
    expect(refusalHint(reasonNamed(reason), details)).toBe(hint);
  });
});

describe("obstacleRemedy()", () => {
  const cases: readonly [string, string, string][] = [
    ["membership", "REGISTERED", "rollcall node approve n1"],
    ["membership", "OPERATOR_REJECTED", "rollcall node approve n1"],
    ["membership", "OPERATOR_BANNED", "rollcall node unban n1, then rollcall node approve n1"],
    ["health", "OPERATOR_MARKED", "rollcall node clear-mark n1"],
    ["health", "HEARTBEATS_MISSED", "see to it"],
    ["scheduling", "OPERATOR_CORDONED", "rollcall node uncordon n1"],
    [
      "scheduling",
      "HARDWARE_IN_DOUBT",
      "repair the hardware, or accept its current state with rollcall node accept-hardware n1",
    ],
  ];
  it.each(cases)("should name the command for the %s of %s, or repeat the server's words", (state, reason, remedy) => {
    expect(obstacleRemedy({ state, reason, remedy: "see to it" }, "n1")).toBe(remedy);
  });
});
