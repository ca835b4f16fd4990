import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { GPU_SERVER, LAPTOP, RASPBERRY_PI } from "../testing/recordings/machines.ts";
import { isLasting, parseMac, parseTemporaryAddresses, readInterfaces } from "./interfaces.ts";

describe("readInterfaces()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should list a server's ports, without interfaces of containers", async () => {
    planted = await plantMachine(GPU_SERVER);
    expect(await readInterfaces(planted.machine)).toEqual([
      {
        name: "ens1f0np0",
        mac: "94:6d:ae:12:34:56",
        addresses: ["10.20.0.7/16"],
        speedMbps: 100_000,
      },
      { name: "ens1f1np1", mac: "94:6d:ae:12:34:57", addresses: [], speedMbps: undefined },
    ]);
  });

  it("should omit privacy addresses, and keep bridges over hardware and tunnels", async () => {
    planted = await plantMachine(LAPTOP);
    expect(await readInterfaces(planted.machine)).toEqual([
      {
        name: "br0",
        mac: "a8:3b:76:01:02:09",
        addresses: ["192.168.7.41/24"],
        speedMbps: 1_000,
      },
      { name: "enp2s0", mac: "a8:3b:76:01:02:09", addresses: [], speedMbps: 1_000 },
      { name: "wg0", mac: undefined, addresses: ["10.99.0.2/32"], speedMbps: undefined },
      {
        name: "wlp1s0",
        mac: "a8:3b:76:01:02:03",
        addresses: ["192.168.7.40/24", "2001:db8:0:1:a4b:7fff:fe00:1122/64"],
        speedMbps: undefined,
      },
    ]);
  });

  it("should list Wi-Fi and an unplugged port of a Raspberry Pi", async () => {
    planted = await plantMachine(RASPBERRY_PI);
    const interfaces = await readInterfaces(planted.machine);
    expect(interfaces.map(({ name, addresses }) => [name, addresses])).toEqual([
      ["eth0", []],
      ["wlan0", ["192.168.1.23/24"]],
    ]);
  });

  it("should list all interfaces with an address if none is hardware", async () => {
    planted = await plantMachine({
      files: {
        "/sys/class/net/eth0/uevent": "INTERFACE=eth0\n",
        "/sys/class/net/eth0/speed": "10000\n",
      },
      system: {
        addresses: () => [
          {
            interfaceName: "eth0",
            address: "172.17.0.2",
            cidr: "172.17.0.2/16",
            mac: "02:42:ac:11:00:02",
            internal: false,
          },
        ],
      },
    });
    expect(await readInterfaces(planted.machine)).toEqual([
      { name: "eth0", mac: undefined, addresses: ["172.17.0.2/16"], speedMbps: 10_000 },
    ]);
  });

  it("should omit virtual functions, which move into virtual machines", async () => {
    planted = await plantMachine({
      files: {
        "/sys/class/net/ens1/uevent": "INTERFACE=ens1\n",
        "/sys/class/net/ens1v0/uevent": "INTERFACE=ens1v0\n",
        "/sys/devices/0000:18:00.0/class": "0x020000\n",
        "/sys/devices/0000:18:00.2/class": "0x020000\n",
      },
      links: {
        "/sys/class/net/ens1/device": "../../../devices/0000:18:00.0",
        "/sys/class/net/ens1v0/device": "../../../devices/0000:18:00.2",
        "/sys/devices/0000:18:00.2/physfn": "../0000:18:00.0",
      },
    });
    const interfaces = await readInterfaces(planted.machine);
    expect(interfaces.map(({ name }) => name)).toEqual(["ens1"]);
  });
});

describe("parseTemporaryAddresses()", () => {
  it.each([
    ["permanent", "80", false],
    ["stable and managed", "00", false],
    ["temporary", "01", true],
    ["deprecated", "20", true],
    ["tentative", "40", true],
  ])("should classify an address as %s", (_, flags, temporary) => {
    const text = `20010db8000000000000000000000001 02 40 00 ${flags}     eth0\n`;
    expect(parseTemporaryAddresses(text).has("2001:db8::1")).toBe(temporary);
  });

  it("should skip lines that are not addresses", () => {
    expect(parseTemporaryAddresses("garbage\n\n20010db8 02 40 00 01 eth0").size).toBe(0);
  });
});

describe("parseMac()", () => {
  it.each([
    ["52:54:00:AB:cd:ef", "52:54:00:ab:cd:ef"],
    ["00:00:00:00:00:00", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("should read %s as %s", (text, mac) => {
    expect(parseMac(text)).toBe(mac);
  });
});

describe("isLasting()", () => {
  it.each([
    ["10.0.0.7", true],
    ["169.254.10.1", false],
    ["fe80::1", false],
    ["febf::1", false],
    ["fec0::1", true],
    ["fd12::1", true],
  ])("should classify %s as %s", (address, lasting) => {
    expect(isLasting(address)).toBe(lasting);
  });
});
