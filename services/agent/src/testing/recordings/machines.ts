import type { InterfaceAddress } from "../../machine/machine.ts";
import type { RecordedMachine } from "../machine-tree.ts";
import { LAPTOP_CPUINFO, RASPBERRY_CPUINFO, VIRTUAL_CPUINFO, XEON_CPUINFO } from "./cpuinfo.ts";
import { H100_FACTS, RADEON_FACTS } from "./gpu-tools.ts";

/** Two sockets of 56 cores, two NUMA nodes, eight H100. */
export const GPU_SERVER: RecordedMachine = {
  files: {
    "/etc/os-release": `PRETTY_NAME="Ubuntu 22.04.4 LTS"\nNAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\n`,
    "/proc/cpuinfo": XEON_CPUINFO,
    "/proc/meminfo": `MemTotal:       2113389768 kB
MemFree:        1800213456 kB
MemAvailable:   2034567890 kB
Buffers:          512348 kB
Cached:         212345678 kB
`,
    "/proc/self/cgroup": "0::/system.slice/rollcall-agent.service\n",
    "/sys/fs/cgroup/system.slice/rollcall-agent.service/cpu.max": "max 100000\n",
    "/sys/fs/cgroup/system.slice/rollcall-agent.service/memory.max": "max\n",
    "/dev/kvm": "",
    "/sys/module/kvm_intel/parameters/nested": "Y\n",
    ...topologyFiles({ sockets: 2, coresEach: 56, threadsEach: 2 }),
    ...numaFiles(0, "0-55,112-167", 1_056_694_212, "10 21"),
    ...numaFiles(1, "56-111,168-223", 1_056_695_556, "21 10"),
    ...interfaceFiles("ens1f0np0", "94:6d:ae:12:34:56", "100000"),
    ...interfaceFiles("ens1f1np1", "94:6d:ae:12:34:57", "-1"),
    ...interfaceFiles("docker0", "02:42:9c:01:02:03", "-1", "bridge"),
    ...interfaceFiles("veth1a2b3c4", "de:ad:be:ef:00:01", "10000"),
    "/sys/class/net/docker0/brif/veth1a2b3c4/port_no": "0x1\n",
    ...interfaceFiles("lo", "00:00:00:00:00:00", ""),
  },
  links: {
    "/sys/class/net/ens1f0np0/device": "../../../0000:16:00.0",
    "/sys/class/net/ens1f1np1/device": "../../../0000:16:00.1",
  },
  programs: { "nvidia-smi": H100_FACTS },
  system: {
    addresses: () => [
      address("lo", "127.0.0.1/8"),
      address("ens1f0np0", "fe80::966d:aeff:fe12:3456/64"),
      address("ens1f0np0", "10.20.0.7/16"),
      address("docker0", "172.17.0.1/16"),
    ],
  },
};

/** A small virtual machine in a cloud: no sensors, no KVM, no GPU, two threads of one core. */
export const VIRTUAL_MACHINE: RecordedMachine = {
  files: {
    "/etc/os-release": `NAME="Amazon Linux"\nVERSION="2023"\nPRETTY_NAME="Amazon Linux 2023.5"\n`,
    "/proc/cpuinfo": VIRTUAL_CPUINFO,
    "/proc/meminfo": "MemTotal:        3943412 kB\nMemFree: 2000000 kB\nMemAvailable:    3012345 kB\n",
    ...topologyFiles({ sockets: 1, coresEach: 1, threadsEach: 2 }),
    ...numaFiles(0, "0-1", 3_943_412, "10"),
    ...interfaceFiles("ens5", "0a:ff:d1:22:33:44", ""),
  },
  links: { "/sys/class/net/ens5/device": "../../../0000:00:05.0" },
  system: { addresses: () => [address("ens5", "172.31.5.9/20")] },
};

/** Raspberry Pi 4: one temperature, no NUMA, Wi-Fi and an unplugged cable port. */
export const RASPBERRY_PI: RecordedMachine = {
  files: {
    "/etc/os-release": `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n`,
    "/proc/cpuinfo": RASPBERRY_CPUINFO,
    "/proc/meminfo": "MemTotal:        3884376 kB\nMemFree: 2500000 kB\nMemAvailable:    3300000 kB\n",
    ...topologyFiles({ sockets: 1, coresEach: 4, threadsEach: 1 }),
    "/sys/class/hwmon/hwmon0/name": "cpu_thermal\n",
    "/sys/class/hwmon/hwmon0/temp1_input": "48199\n",
    ...interfaceFiles("eth0", "dc:a6:32:01:02:03", "-1"),
    ...interfaceFiles("wlan0", "dc:a6:32:01:02:04", "", "wlan"),
  },
  links: {
    "/sys/class/net/eth0/device": "../../../fd580000.ethernet",
    "/sys/class/net/wlan0/device": "../../../mmc1:0001:1",
  },
  system: {
    architecture: "arm64",
    addresses: () => [address("wlan0", "192.168.1.23/24")],
  },
};

/** A laptop with an AMD GPU, several sensors and privacy addresses. */
export const LAPTOP: RecordedMachine = {
  files: {
    "/etc/os-release": `NAME="Fedora Linux"\nPRETTY_NAME="Fedora Linux 40 (Workstation Edition)"\n`,
    "/proc/cpuinfo": LAPTOP_CPUINFO,
    "/proc/meminfo": "MemTotal:       32015412 kB\nMemFree: 9000000 kB\nMemAvailable:   21012345 kB\n",
    "/dev/kvm": "",
    "/sys/module/kvm_amd/parameters/nested": "1\n",
    ...topologyFiles({ sockets: 1, coresEach: 8, threadsEach: 2 }),
    "/sys/class/hwmon/hwmon0/name": "acpitz\n",
    "/sys/class/hwmon/hwmon0/temp1_input": "52000\n",
    "/sys/class/hwmon/hwmon3/name": "nvme\n",
    "/sys/class/hwmon/hwmon3/temp1_input": "38850\n",
    "/sys/class/hwmon/hwmon4/name": "k10temp\n",
    "/sys/class/hwmon/hwmon4/temp1_input": "61250\n",
    "/sys/class/hwmon/hwmon5/name": "thinkpad\n",
    "/sys/class/hwmon/hwmon5/temp1_input": "61000\n",
    "/sys/class/hwmon/hwmon5/temp2_input": "0\n",
    "/sys/class/hwmon/hwmon5/temp3_input": "45000\n",
    "/sys/class/hwmon/hwmon5/temp3_fault": "1\n",
    "/sys/class/hwmon/hwmon5/fan1_input": "2304\n",
    "/proc/net/if_inet6": `20010db8000000010a4b7ffffe001122 02 40 00 00   wlp1s0
20010db8000000017d31f2c4a1b0ffee 02 40 00 01   wlp1s0
fe80000000000000a1b2c3d4e5f60718 02 40 20 80   wlp1s0
00000000000000000000000000000001 01 80 10 80       lo
`,
    ...interfaceFiles("wlp1s0", "A8:3B:76:01:02:03", "", "wlan"),
    ...interfaceFiles("wg0", "", "", "wireguard"),
    ...interfaceFiles("br0", "a8:3b:76:01:02:09", "1000", "bridge"),
    "/sys/class/net/br0/brif/enp2s0/port_no": "0x1\n",
    ...interfaceFiles("enp2s0", "a8:3b:76:01:02:09", "1000"),
  },
  links: {
    "/sys/class/net/wlp1s0/device": "../../../0000:01:00.0",
    "/sys/class/net/enp2s0/device": "../../../0000:02:00.0",
  },
  programs: { "/opt/rocm/bin/rocm-smi": RADEON_FACTS },
  system: {
    addresses: () => [
      address("wlp1s0", "2001:db8:0:1:7d31:f2c4:a1b0:ffee/64"),
      address("wlp1s0", "2001:db8:0:1:a4b:7fff:fe00:1122/64"),
      address("wlp1s0", "192.168.7.40/24"),
      address("wg0", "10.99.0.2/32"),
      address("br0", "192.168.7.41/24"),
    ],
  },
};

/**
 * The files that describe a machine's processors. Threads are numbered as on Linux: first the first thread of
 * each core, then the second of each core.
 */
export function topologyFiles(shape: {
  readonly sockets: number;
  readonly coresEach: number;
  readonly threadsEach: number;
}): Record<string, string> {
  const cores = shape.sockets * shape.coresEach;
  const threads = cores * shape.threadsEach;
  const files: Record<string, string> = {
    "/sys/devices/system/cpu/online": threads === 1 ? "0\n" : `0-${threads - 1}\n`,
  };
  const all = Array.from({ length: threads }, (_, cpu) => cpu);
  for (const cpu of all) {
    const socketOf = (other: number): number => Math.floor((other % cores) / shape.coresEach);
    const at = `/sys/devices/system/cpu/cpu${cpu}/topology`;
    files[`${at}/thread_siblings_list`] = `${all.filter((other) => other % cores === cpu % cores)}\n`;
    files[`${at}/core_siblings_list`] = `${all.filter((other) => socketOf(other) === socketOf(cpu))}\n`;
  }
  return files;
}

function numaFiles(id: number, cpus: string, kibibytes: number, distance: string) {
  const at = `/sys/devices/system/node/node${id}`;
  return {
    [`${at}/cpulist`]: `${cpus}\n`,
    [`${at}/distance`]: `${distance}\n`,
    [`${at}/meminfo`]: `Node ${id} MemTotal:       ${kibibytes} kB\nNode ${id} MemFree:        1234 kB\n`,
  };
}

function interfaceFiles(name: string, mac: string, speed: string, type?: string) {
  const at = `/sys/class/net/${name}`;
  return {
    [`${at}/address`]: `${mac}\n`,
    ...(speed === "" ? {} : { [`${at}/speed`]: `${speed}\n` }),
    [`${at}/uevent`]: `${type ? `DEVTYPE=${type}\n` : ""}INTERFACE=${name}\nIFINDEX=2\n`,
  };
}

function address(interfaceName: string, cidr: string): InterfaceAddress {
  return {
    interfaceName,
    cidr,
    address: cidr.replace(/\/\d+$/, ""),
    mac: "00:00:00:00:00:00",
    internal: interfaceName === "lo",
  };
}
