import { describe, expect, it } from "@jest/globals";
import { reasonText, stateWords } from "./state-words.ts";

describe("stateWords()", () => {
  it.each([
    ["NEVER_CONNECTED", "never connected"],
    ["GPU_LOST", "GPU lost"],
    ["GPUS_UNKNOWN", "GPUs unknown"],
    ["KILLED_OOM", "killed: out of memory"],
    ["LIVE", "running"],
    ["", ""],
  ])("should write %s as words", (reason, words) => {
    expect(stateWords(reason)).toBe(words);
  });
});

describe("reasonText()", () => {
  it.each([
    ["DISK_FULL", "1 MiB left", "disk full: 1 MiB left"],
    ["DISK_FULL", "disk full: 1 MiB left", "disk full: 1 MiB left"],
    ["DISK_FULL", "", "disk full"],
    ["", "1 MiB left", "1 MiB left"],
  ])("should say %s with the message '%s'", (reason, message, text) => {
    expect(reasonText(reason, message)).toBe(text);
  });
});
