import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { parsePciAddress, readVfioGpus } from "./pci.ts";

describe("parsePciAddress()", () => {
  it.each([
    ["00000000:1B:00.0", "0000:1b:00.0"],
    ["0000:03:00.0", "0000:03:00.0"],
    ["00010001:00:00.0", "10001:00:00.0"],
    ["00000008:01:00.0", "0008:01:00.0"],
    ["1B:00.0", undefined],
    ["[N/A]", undefined],
    [undefined, undefined],
  ])("should read %s as %s", (text, address) => {
    expect(parsePciAddress(text)).toBe(address);
  });
});

describe("readVfioGpus()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());
  const device = (address: string, pciClass: string, vendor: string, id: string) => ({
    [`/sys/bus/pci/devices/${address}/class`]: `${pciClass}\n`,
    [`/sys/bus/pci/devices/${address}/vendor`]: `${vendor}\n`,
    [`/sys/bus/pci/devices/${address}/device`]: `${id}\n`,
  });

  it("should list display and 3D controllers that are bound to vfio-pci, by address", async () => {
    planted = await plantMachine({
      files: {
        ...device("0000:82:00.0", "0x030200", "0x10de", "0x2330"),
        ...device("0000:65:00.0", "0x030000", "0x1002", "0x744c"),
        ...device("0000:65:00.1", "0x040300", "0x1002", "0xab30"),
        ...device("0000:17:00.0", "0x030200", "0x10de", "0x2330"),
        ...device("0000:00:1f.0", "0x060100", "0x8086", "0xa1c3"),
      },
      links: {
        "/sys/bus/pci/devices/0000:82:00.0/driver": "../../../../bus/pci/drivers/vfio-pci",
        "/sys/bus/pci/devices/0000:82:00.0/iommu_group": "../../../../kernel/iommu_groups/71",
        "/sys/bus/pci/devices/0000:65:00.0/driver": "../../../../bus/pci/drivers/vfio-pci",
        "/sys/bus/pci/devices/0000:65:00.1/driver": "../../../../bus/pci/drivers/vfio-pci",
        "/sys/bus/pci/devices/0000:17:00.0/driver": "../../../../bus/pci/drivers/nvidia",
      },
    });
    expect(await readVfioGpus(planted.machine)).toEqual([
      { pciAddress: "0000:65:00.0", vendorId: "1002", deviceId: "744c", iommuGroup: undefined },
      { pciAddress: "0000:82:00.0", vendorId: "10de", deviceId: "2330", iommuGroup: 71 },
    ]);
  });

  it("should find none without a PCI bus", async () => {
    planted = await plantMachine();
    expect(await readVfioGpus(planted.machine)).toEqual([]);
  });
});
