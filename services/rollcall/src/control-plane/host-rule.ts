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
 * The names by which browsers may call a process: this machine's, those that are configured or advertised, and those of
 * the certificate, as it is at that moment. Loopback names and addresses are allowed besides.
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
