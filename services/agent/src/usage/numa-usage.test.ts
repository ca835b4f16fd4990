import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { GPU_SERVER, VIRTUAL_MACHINE } from "../testing/recordings/machines.ts";
import { createNumaMeter, parseNodeUsage } from "./numa-usage.ts";

/** A line of /proc/stat: a processor's busy and idle time. */
const line = (cpu: number, busy: number, idle: number) => `cpu${cpu} ${busy} 0 0 ${idle} 0 0 0 0 0 0`;
const stat = (...lines: readonly string[]) => ["cpu  9 9 9 9 9 9 9 9 9 9", ...lines, "intr 1 2 3"].join("\n");
const nodeFiles = (id: number, cpus: string, kibibytes: number) => ({
  [`/sys/devices/system/node/node${id}/cpulist`]: `${cpus}\n`,
  [`/sys/devices/system/node/node${id}/meminfo`]: [
    `Node ${id} MemTotal: ${kibibytes} kB`,
    `Node ${id} MemFree: ${kibibytes / 4} kB\n`,
  ].join("\n"),
});

describe("parseNodeUsage()", () => {
  it("should count reclaimable memory as free", () => {
    const text = `Node 0 MemTotal:       1000000 kB
Node 0 MemFree:         300000 kB
Node 0 MemUsed:         700000 kB
Node 0 SwapCached:           0 kB
Node 0 Active:          400000 kB
Node 0 Active(anon):    100000 kB
Node 0 Inactive(anon):       0 kB
Node 0 Active(file):    200000 kB
Node 0 Inactive(file):  100000 kB
Node 0 FilePages:       350000 kB
Node 0 Shmem:            50000 kB
Node 0 KReclaimable:     20000 kB
Node 0 SReclaimable:     10000 kB`;
    expect(parseNodeUsage(text)).toEqual({ usedBytes: 380_000 * 1024, totalBytes: 1_000_000 * 1024 });
    const older = text.replace(/^.*KReclaimable.*\n/m, "");
    expect(parseNodeUsage(older)?.usedBytes).toBe(390_000 * 1024);
  });

  it.each([
    ["nothing", "", undefined],
    ["a node without memory", "Node 4 MemTotal: 0 kB\nNode 4 MemFree: 0 kB", { usedBytes: 0, totalBytes: 0 }],
    ["no free memory", "Node 4 MemTotal: 5 kB", undefined],
  ])("should read what %s provides", (_, text, usage) => {
    expect(parseNodeUsage(text)).toEqual(usage);
  });
});

describe("createNumaMeter()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should measure each node's processors from one call to the next", async () => {
    planted = await plantMachine({
      files: {
        "/proc/stat": stat(line(0, 0, 0), line(1, 0, 0), line(2, 0, 0)),
        ...nodeFiles(0, "0-1", 4_096),
        ...nodeFiles(1, "2-3", 8_192),
      },
    });
    const meter = createNumaMeter(planted.machine);
    expect(await meter()).toEqual([
      { id: 0, cpuPercent: undefined, memory: { usedBytes: 3 * 1024 ** 2, totalBytes: 4 * 1024 ** 2 } },
      { id: 1, cpuPercent: undefined, memory: { usedBytes: 6 * 1024 ** 2, totalBytes: 8 * 1024 ** 2 } },
    ]);
    // A new processor is left out until it has been read twice.
    await planted.write("/proc/stat", stat(line(0, 30, 70), line(1, 50, 50), line(2, 90, 10), line(3, 5_000, 0)));
    expect((await meter()).map(({ cpuPercent }) => cpuPercent)).toEqual([40, 90]);
  });

  it("should read the recording of a machine with two sockets", async () => {
    planted = await plantMachine(GPU_SERVER);
    const readings = await createNumaMeter(planted.machine)();
    expect(readings.map(({ id, memory }) => [id, memory?.totalBytes])).toEqual([
      [0, 1_056_694_212 * 1024],
      [1, 1_056_695_556 * 1024],
    ]);
  });

  it("should omit nodes that have neither processors nor memory", async () => {
    const empty = nodeFiles(2, "", 0);
    planted = await plantMachine({ files: { ...nodeFiles(0, "0", 1_024), ...nodeFiles(1, "", 1_024), ...empty } });
    expect((await createNumaMeter(planted.machine)()).map(({ id }) => id)).toEqual([0, 1]);
    await planted.write("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB\nNode 1 MemFree: 0 kB\n");
    expect(await createNumaMeter(planted.machine)()).toEqual([]);
  });

  it("should only read a directory if there is one node", async () => {
    planted = await plantMachine(VIRTUAL_MACHINE);
    const paths: string[] = [];
    const machine = {
      ...planted.machine,
      readText: (path: string) => {
        paths.push(path);
        return planted.machine.readText(path);
      },
    };
    expect(await createNumaMeter(machine)()).toEqual([]);
    expect(paths).toEqual([]);
  });
});
