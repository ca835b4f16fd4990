import { UsageError } from "@rollcall/cli";
import { isBeyondLoopback } from "../control-plane/process-plan.ts";
import type { ProcessConfig } from "./process-keys.ts";

/** Whether the API and the agents' port use TLS according to the configuration. */
export function speaksTls(config: ProcessConfig): boolean {
  return config["TLS.CertFile"] !== undefined || config["Up.TLS"];
}

/** Contradictions between TLS settings. */
export function checkTlsConfig(config: ProcessConfig) {
  const problem = (path: keyof ProcessConfig & string, message: string) => ({ path, message });
  const hasCert = config["TLS.CertFile"] !== undefined;
  const hasKey = config["TLS.KeyFile"] !== undefined;
  const together = "TLS.CertFile and TLS.KeyFile must be set together";
  return [
    ...(hasCert && !hasKey ? [problem("TLS.KeyFile", together)] : []),
    ...(hasKey && !hasCert ? [problem("TLS.CertFile", together)] : []),
    ...(config["Up.TLS"] && hasCert
      ? [problem("Up.TLS", "cannot be combined with TLS.CertFile: it creates a different certificate")]
      : []),
    ...(["TLS.ClientCAFile", "TLS.CAFile"] as const)
      .filter((path) => config[path] !== undefined && !speaksTls(config))
      .map((path) => problem(path, "has no effect without TLS.CertFile")),
    ...(config["TLS.Probes"] && !speaksTls(config)
      ? [problem("TLS.Probes", "has no effect without TLS.CertFile")]
      : []),
  ];
}

/**
 * Explains why other machines could reach a clear-text port that the configuration does not allow; null if they
 * cannot.
 */
export function plaintextProblem(config: ProcessConfig): string | null {
  const host = config["Listen.Host"];
  if (!isBeyondLoopback(host) || speaksTls(config) || config["Listen.InsecurePlaintext"]) return null;
  return (
    `--listen ${host} is reachable from other machines, and TLS is off: others could read and use access tokens. ` +
    "Set --tls-cert and --tls-key, use `up --tls` for a development certificate, or set --insecure-plaintext if the " +
    "network encrypts all traffic"
  );
}

/** Throws UsageError when other machines could reach a clear-text port, unless the configuration allows it. */
export function refusePlaintext(config: ProcessConfig): void {
  const problem = plaintextProblem(config);
  if (problem !== null) throw new UsageError(problem);
}
