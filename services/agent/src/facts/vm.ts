import type { Machine } from "../machine/machine.ts";
import { type CpuInfo, parseCpuInfo } from "./cpu.ts";
import type { VmFacts } from "./machine-facts.ts";

/** Read whether this machine can run virtual machines with hardware support. */
export async function readVm(machine: Machine): Promise<VmFacts> {
  const [cpuInfo, devices, usable, intel, amd] = await Promise.all([
    machine.readText("/proc/cpuinfo"),
    machine.listNames("/dev"),
    machine.canUse("/dev/kvm"),
    machine.readText("/sys/module/kvm_intel/parameters/nested"),
    machine.readText("/sys/module/kvm_amd/parameters/nested"),
  ]);
  return {
    capable: usable,
    message: usable ? "" : whyNot(parseCpuInfo(cpuInfo ?? ""), devices.includes("kvm"), machine.system.architecture),
    nested: usable && (isYes(intel) || isYes(amd)),
  };
}

function whyNot(cpu: CpuInfo, hasDevice: boolean, architecture: string): string {
  if (hasDevice) return "/dev/kvm exists, but the agent's user cannot open it";
  // Only x86 shows the extension as a flag. On other processors, a missing flag means nothing.
  if (architecture === "x64" && cpu.extension === undefined) {
    return "the processor has no virtualization extension, or the firmware or hypervisor hides it";
  }
  return "/dev/kvm does not exist: the kernel's kvm module is not loaded";
}

/** Whether a module's parameter is on: `Y` or `1`, depending on kernel and module. */
function isYes(text: string | undefined): boolean {
  return text === "Y" || text === "1";
}
