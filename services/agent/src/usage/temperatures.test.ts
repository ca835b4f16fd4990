import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { LAPTOP, RASPBERRY_PI, VIRTUAL_MACHINE } from "../testing/recordings/machines.ts";
import { parseMillidegrees, readTemperatures } from "./temperatures.ts";

describe("readTemperatures()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should sum up a laptop's sensors without those that are off or broken", async () => {
    planted = await plantMachine(LAPTOP);
    const temperatures = await readTemperatures(planted.machine);
    expect(temperatures?.maximumCelsius).toBe(61.25);
    expect(temperatures?.averageCelsius).toBeCloseTo((52 + 38.85 + 61.25 + 61) / 4);
  });

  it("should read a Raspberry Pi's one sensor", async () => {
    planted = await plantMachine(RASPBERRY_PI);
    expect(await readTemperatures(planted.machine)).toEqual({
      averageCelsius: 48.199,
      maximumCelsius: 48.199,
    });
  });

  it("should find none in a virtual machine", async () => {
    planted = await plantMachine(VIRTUAL_MACHINE);
    expect(await readTemperatures(planted.machine)).toBeUndefined();
  });

  it("should read thermal zones if there are no sensors", async () => {
    planted = await plantMachine({
      files: {
        "/sys/class/thermal/thermal_zone0/temp": "40000\n",
        "/sys/class/thermal/thermal_zone1/temp": "50000\n",
        "/sys/class/thermal/cooling_device0/cur_state": "0\n",
      },
    });
    expect(await readTemperatures(planted.machine)).toEqual({
      averageCelsius: 45,
      maximumCelsius: 50,
    });
  });
});

describe("parseMillidegrees()", () => {
  it.each([
    ["48199", 48.199],
    ["-5000", -5],
    ["0", undefined],
    ["127000", undefined],
    ["-62000", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("should read %j as %s", (text, celsius) => {
    expect(parseMillidegrees(text)).toBe(celsius);
  });
});
