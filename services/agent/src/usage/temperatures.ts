import type { Machine } from "../machine/machine.ts";
import { parseNumber } from "../machine/parse-text.ts";
import type { Temperatures } from "./machine-usage.ts";

const HWMON_ROOT = "/sys/class/hwmon";
const THERMAL_ROOT = "/sys/class/thermal";

/** Read all temperature sensors. Without hwmon sensors, read thermal zones. */
export async function readTemperatures(machine: Machine): Promise<Temperatures | undefined> {
  const sensors = await readHwmon(machine);
  return summarize(sensors.length > 0 ? sensors : await readThermalZones(machine));
}

/** Parse a temperature in thousandths of a degree. Implausible values come from a sensor that is not connected. */
export function parseMillidegrees(text: string | undefined): number | undefined {
  const millidegrees = parseNumber(text);
  if (millidegrees === undefined) return undefined;
  const celsius = millidegrees / 1000;
  return celsius !== 0 && celsius > COLDEST_CELSIUS && celsius < HOTTEST_CELSIUS ? celsius : undefined;
}

/**
 * The highest plausible temperature. Chips report 127 or more, 0, or far below freezing for an input without a
 * sensor.
 */
const HOTTEST_CELSIUS = 126;
const COLDEST_CELSIUS = -40;

function summarize(celsius: readonly number[]): Temperatures | undefined {
  if (celsius.length === 0) return undefined;
  return {
    averageCelsius: celsius.reduce((sum, value) => sum + value, 0) / celsius.length,
    maximumCelsius: Math.max(...celsius),
  };
}

async function readHwmon(machine: Machine): Promise<readonly number[]> {
  const chips = await machine.listNames(HWMON_ROOT);
  const readings = await Promise.all(
    chips.map(async (chip) => {
      const at = `${HWMON_ROOT}/${chip}`;
      const files = await machine.listNames(at);
      const inputs = files.filter((file) => /^temp\d+_input$/.test(file));
      return Promise.all(inputs.map((input) => readSensor(machine, `${at}/${input}`)));
    }),
  );
  return readings.flat().filter((celsius) => celsius !== undefined);
}

async function readSensor(machine: Machine, input: string): Promise<number | undefined> {
  const [celsius, fault, enable] = await Promise.all([
    machine.readText(input).then(parseMillidegrees),
    machine.readText(input.replace(/input$/, "fault")),
    machine.readText(input.replace(/input$/, "enable")),
  ]);
  return fault === "1" || enable === "0" ? undefined : celsius;
}

async function readThermalZones(machine: Machine): Promise<readonly number[]> {
  const names = await machine.listNames(THERMAL_ROOT);
  const zones = names.filter((name) => /^thermal_zone\d+$/.test(name));
  const readings = await Promise.all(
    zones.map((zone) => machine.readText(`${THERMAL_ROOT}/${zone}/temp`).then(parseMillidegrees)),
  );
  return readings.filter((celsius) => celsius !== undefined);
}
