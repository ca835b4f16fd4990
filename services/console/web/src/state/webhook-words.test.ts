import { describe, expect, it } from "@jest/globals";
import { newNameProblem, resumesWhenSet, webhookCommand } from "./webhook-words.ts";

const EMPTY = { url: "https://x", types: [], selector: "", description: "" };
const FULL = {
  url: "https://x",
  types: ["node.approved", "node.rejected"],
  selector: "zone=a",
  description: "the ops",
};

describe("newNameProblem()", () => {
  it.each([
    ["", undefined],
    ["ops", undefined],
    ["Ops", "lowercase letters, digits and -"],
    ["-ops", "lowercase letters, digits and -"],
    ["taken", "already exists: edit it in the list, or choose another name"],
  ])("should evaluate %p", (name, problem) => {
    expect(newNameProblem(name, ["other", "taken"])).toBe(problem);
  });
});

describe("resumesWhenSet()", () => {
  it.each([
    [false, "", false],
    [false, "DELIVERY_FAILED", true],
    [false, "GONE", true],
    [true, "OPERATOR_PAUSED", false],
  ])("should report paused: %p and the reason %p", (paused, reason, resumes) => {
    expect(resumesWhenSet({ paused }, reason)).toBe(resumes);
  });
});

describe("webhookCommand()", () => {
  it("should leave out fields that a new one does not have", () => {
    expect(webhookCommand("ops", EMPTY, null, false)).toBe("rollcall webhook set ops --url https://x");
  });

  it("should name emptied fields, because unnamed ones stay", () => {
    expect(webhookCommand("ops", EMPTY, FULL, false)).toBe(
      "rollcall webhook set ops --url https://x --type all --selector '' --description ''",
    );
  });

  it("should name what is set", () => {
    expect(webhookCommand("ops", FULL, EMPTY, true)).toBe(
      "rollcall webhook set ops --url https://x --type 'node.approved,node.rejected' --selector zone=a " +
        "--description 'the ops' --rotate-secret",
    );
  });
});
