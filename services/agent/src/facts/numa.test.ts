import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { GPU_SERVER, RASPBERRY_PI } from "../testing/recordings/machines.ts";
import { readNumaNodes } from "./numa.ts";

describe("readNumaNodes()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should read both nodes of a dual-socket server", async () => {
    planted = await plantMachine(GPU_SERVER);
    expect(await readNumaNodes(planted.machine)).toEqual([
      {
        id: 0,
        cpus: "0-55,112-167",
        memoryBytes: 1_056_694_212 * 1024,
        distances: [10, 21],
      },
      {
        id: 1,
        cpus: "56-111,168-223",
        memoryBytes: 1_056_695_556 * 1024,
        distances: [21, 10],
      },
    ]);
  });

  it("should order nodes by id and keep those that have only memory", async () => {
    planted = await plantMachine({
      files: {
        "/sys/devices/system/node/node10/cpulist": "\n",
        "/sys/devices/system/node/node10/meminfo": "Node 10 MemTotal: 1024 kB\n",
        "/sys/devices/system/node/node2/cpulist": "0-3\n",
        "/sys/devices/system/node/online": "2,10\n",
      },
    });
    expect(await readNumaNodes(planted.machine)).toEqual([
      { id: 2, cpus: "0-3", memoryBytes: undefined, distances: [] },
      { id: 10, cpus: "", memoryBytes: 1024 ** 2, distances: [] },
    ]);
  });

  it("should find none on a Raspberry Pi", async () => {
    planted = await plantMachine(RASPBERRY_PI);
    expect(await readNumaNodes(planted.machine)).toEqual([]);
  });
});
