import { BRAKE_LEASE, type LeasedTask, type LeasedTaskOptions, leasedTask } from "@rollcall/store";
import type { BrakeDecider } from "../brake/brake-decider.ts";

/** Decide about the brake, in one of the processes of health. */
export function decideBrakeTask(
  decider: BrakeDecider,
  options: Pick<LeasedTaskOptions, "store" | "clock" | "log" | "renewEveryMs" | "expiryMs"> & {
    readonly instance: string;
  },
): LeasedTask {
  const { instance, ...shared } = options;
  return leasedTask({
    ...shared,
    claim: { name: BRAKE_LEASE, instance, service: "health", address: "" },
    work: (signal, succeeded) => decider.run(signal, succeeded),
  });
}
