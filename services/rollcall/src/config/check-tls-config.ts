import { UsageError } from "@rollcall/cli";
import { isBeyondLoopback } from "../control-plane/process-plan.ts";
import type { ProcessConfig } from "./process-keys.ts";

/** Whether the API and the agents' port speak TLS. */
export function speaksTls(config: ProcessConfig): boolean {
  return config["TLS.CertFile"] !== undefined || config["Up.TLS"];
}

/** What is wrong with the settings of TLS together. */
export function checkTlsConfig(config: ProcessConfig) {
  const problem = (path: keyof ProcessConfig & string, message: string) => ({ path, message });
  const hasCert = config["TLS.CertFile"] !== undefined;
  const hasKey = config["TLS.KeyFile"] !== undefined;
  const together = "TLS.CertFile and TLS.KeyFile go together";
  return [
    ...(hasCert && !hasKey ? [problem("TLS.KeyFile", together)] : []),
    ...(hasKey && !hasCert ? [problem("TLS.CertFile", together)] : []),
    ...(config["Up.TLS"] && hasCert
      ? [problem("Up.TLS", "has no use next to TLS.CertFile: it would make another certificate")]
      : []),
    ...(["TLS.ClientCAFile", "TLS.CAFile"] as const)
      .filter((path) => config[path] !== undefined && !speaksTls(config))
      .map((path) => problem(path, "has no use without TLS.CertFile")),
    ...(config["TLS.Probes"] && !speaksTls(config) ? [problem("TLS.Probes", "has no use without TLS.CertFile")] : []),
  ];
}

/** Why other machines could reach a clear-text port although that is not allowed; null if they cannot. */
export function plaintextProblem(config: ProcessConfig): string | null {
  const host = config["Listen.Host"];
  if (!isBeyondLoopback(host) || speaksTls(config) || config["Listen.InsecurePlaintext"]) return null;
  return (
    `--listen ${host} can be reached by other machines, and there is no TLS: access tokens could be read on ` +
    `the way and used. Set --tls-cert and --tls-key, or \`up --tls\` for a development certificate; or say ` +
    "--insecure-plaintext if the network encrypts by itself"
  );
}

/** Throws UsageError when other machines could reach a clear-text port, unless that is allowed. */
export function refusePlaintext(config: ProcessConfig): void {
  const problem = plaintextProblem(config);
  if (problem !== null) throw new UsageError(problem);
}
