import { speaksTls } from "../config/check-tls-config.ts";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { isBeyondLoopback } from "./process-plan.ts";

/** The settings that decide who can join without an operator's approval. */
export interface ExposureFacts {
  /** The listen address. */
  readonly host: string;
  /** Whether a proxy forwards calls, so that other machines reach a process that listens only on this machine. */
  readonly proxied: boolean;
  /** Whether TLS is off. */
  readonly plaintext: boolean;
  readonly manualApproval: boolean;
  readonly joinTokens: ControlPlaneConfig["Orchestrator.NodeManager.JoinTokens"];
}

/** Read these settings from a configuration. */
export function exposureFacts(host: string, config: ControlPlaneConfig): ExposureFacts {
  return {
    host,
    proxied: config["Listen.TrustedProxies"].length > 0,
    plaintext: !speaksTls(config),
    manualApproval: config["Orchestrator.NodeManager.ManualApproval"],
    joinTokens: config["Orchestrator.NodeManager.JoinTokens"],
  };
}

/** Warnings about who can join and who can eavesdrop; none when only this machine can reach the process. */
export function exposure(facts: ExposureFacts): readonly string[] {
  if (!isBeyondLoopback(facts.host) && !facts.proxied) return [];
  return [...openGuards(facts), ...openTransport(facts)];
}

/** Warnings about who can join; none when joining needs an approval or a token. */
function openGuards(facts: ExposureFacts): readonly string[] {
  const { host, proxied, manualApproval, joinTokens } = facts;
  if (manualApproval || joinTokens === "strict") return [];
  const where = isBeyondLoopback(host) || !proxied ? "" : " and receives calls through proxies";
  return [
    `Everything listens on ${host}${where}, manual approval is off and join tokens are not required: any machine ` +
      "that reaches it can join the fleet. Set Orchestrator.NodeManager.JoinTokens to strict (--join-tokens strict), " +
      "or Orchestrator.NodeManager.ManualApproval (--manual-approval) to approve each node yourself.",
  ];
}

/** Warnings about clear text; none with TLS, or when only this machine can connect. */
export function openTransport({ host, plaintext }: ExposureFacts): readonly string[] {
  if (!plaintext || !isBeyondLoopback(host)) return [];
  return [
    `Everything listens on ${host} in clear text: others can read access tokens and the traffic between health ` +
      "replicas. Set TLS.CertFile and TLS.KeyFile (--tls-cert, --tls-key).",
  ];
}
