import { describe, expect, it } from "@jest/globals";
import { MI250_FACTS, RADEON_FACTS } from "../testing/recordings/gpu-tools.ts";
import { parseRocmFacts } from "./rocm.ts";

describe("parseRocmFacts()", () => {
  it("should read two accelerators of a server", () => {
    const gpus = parseRocmFacts(MI250_FACTS);
    expect(gpus).toHaveLength(2);
    expect(gpus[1]).toEqual({
      vendor: "AMD",
      index: 1,
      name: "AMD INSTINCT MI250 (MCM) OAM AC MBA",
      uuid: "0x719d230578348e8d",
      driverVersion: "5.16.9.22.20",
      pciAddress: "0000:2c:00.0",
      memoryMib: 65_520,
      unusable: "",
    });
  });

  it("should read newer capitalization, skip warnings, and use any available name", () => {
    expect(parseRocmFacts(RADEON_FACTS)).toEqual([
      expect.objectContaining({ index: 0, name: "Radeon RX 7900 XTX", memoryMib: 24_560 }),
      expect.objectContaining({ index: 1, name: "gfx1036", uuid: undefined, memoryMib: 2_048 }),
    ]);
  });

  it.each([
    ["nothing", ""],
    ["no cards", "{}"],
    ["a message", "ERROR: No AMD GPUs specified"],
    ["broken JSON", '{"card0": {"VRAM Total'],
    ["other JSON", '{"card0": "flat", "cardX": {}, "system": null}'],
    ["a list", "[{}]"],
  ])("should never throw on %s", (_, stdout) => {
    expect(() => parseRocmFacts(stdout)).not.toThrow();
  });
});
