import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { createMachine } from "./machine.ts";

describe("createMachine()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted?.remove());

  it("should read files, directories and links below its root", async () => {
    planted = await plantMachine({
      files: { "/sys/b": "two\n", "/sys/a": "one\n\n" },
      links: { "/sys/driver": "../bus/drivers/vfio-pci" },
    });
    const { machine } = planted;
    expect(await machine.readText("/sys/a")).toBe("one");
    expect(await machine.listNames("/sys")).toEqual(["a", "b", "driver"]);
    expect(await machine.linkName("/sys/driver")).toBe("vfio-pci");
    expect(await machine.canUse("/sys/a")).toBe(true);
  });

  it("should return nothing for what is missing", async () => {
    planted = await plantMachine({ files: { "/sys/a/b": "" } });
    const { machine } = planted;
    expect(await machine.readText("/sys/none")).toBeUndefined();
    expect(await machine.readText("/sys/a")).toBeUndefined();
    expect(await machine.listNames("/none")).toEqual([]);
    expect(await machine.linkName("/sys/a/b")).toBeUndefined();
    expect(await machine.canUse("/none")).toBe(false);
    expect(await machine.fileSystemSize("/no/such/place")).toBeUndefined();
  });

  it("should stop reading after a MiB", async () => {
    planted = await plantMachine({ files: { "/huge": "x".repeat(3 * 1024 * 1024) } });
    expect((await planted.machine.readText("/huge"))?.length).toBe(1024 * 1024);
  });

  it("should read this machine by default", async () => {
    const machine = createMachine();
    expect(machine.system.hostname()).not.toBe("");
    expect(machine.system.parallelism()).toBeGreaterThan(0);
    const size = await machine.fileSystemSize("/");
    expect(size?.totalBytes).toBeGreaterThanOrEqual(size?.usedBytes ?? 0);
  });
});
