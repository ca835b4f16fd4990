import { hostname } from "node:os";
import { isRequestForUs } from "@rollcall/domain";
import type { TlsSource } from "@rollcall/identity";
import type { HostRule } from "@rollcall/rpc";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";

type HostConfig = Pick<
  ControlPlaneConfig,
  "Listen.Host" | "Listen.AdvertiseHost" | "Listen.HostNames" | "Health.AdvertiseAddress"
>;

/**
 * The host names that browsers can use to call a process: those of this machine, configured or advertised
 * ones, and the names in the current certificate. Loopback names and addresses are always allowed.
 */
export function hostRule(config: HostConfig, tls: Pick<TlsSource, "hostNames"> | null): HostRule {
  const advertised = config["Health.AdvertiseAddress"]?.replace(/:\d+$/, "");
  const own = [
    hostname(),
    config["Listen.Host"],
    ...config["Listen.HostNames"],
    ...[config["Listen.AdvertiseHost"], advertised].filter((name) => name !== undefined),
  ];
  return (request) => isRequestForUs(request, [...own, ...(tls?.hostNames ?? [])]);
}
