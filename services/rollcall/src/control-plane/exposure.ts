import { speaksTls } from "../config/check-tls-config.ts";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { isBeyondLoopback } from "./process-plan.ts";

/** What decides who can join without an operator's approval. */
export interface ExposureFacts {
  /** The address that everything listens on. */
  readonly host: string;
  /** Whether a proxy passes calls on, so that others reach what only this machine does by itself. */
  readonly proxied: boolean;
  /** Without TLS. */
  readonly plaintext: boolean;
  readonly manualApproval: boolean;
  readonly joinTokens: ControlPlaneConfig["Orchestrator.NodeManager.JoinTokens"];
}

/** The facts of a configuration. */
export function exposureFacts(host: string, config: ControlPlaneConfig): ExposureFacts {
  return {
    host,
    proxied: config["Listen.TrustedProxies"].length > 0,
    plaintext: !speaksTls(config),
    manualApproval: config["Orchestrator.NodeManager.ManualApproval"],
    joinTokens: config["Orchestrator.NodeManager.JoinTokens"],
  };
}

/** Warnings about who may join and who can listen; none when only this machine can. */
export function exposure(facts: ExposureFacts): readonly string[] {
  if (!isBeyondLoopback(facts.host) && !facts.proxied) return [];
  return [...openGuards(facts), ...openTransport(facts)];
}

/** Nothing when joining takes an approval or a token. */
function openGuards(facts: ExposureFacts): readonly string[] {
  const { host, proxied, manualApproval, joinTokens } = facts;
  if (manualApproval || joinTokens === "strict") return [];
  const where = isBeyondLoopback(host) || !proxied ? "" : ", proxies pass on to it what others call";
  return [
    `Everything listens on ${host}${where}, manual approval is off and join tokens are not required: any ` +
      "machine that reaches it may join the fleet. Set Orchestrator.NodeManager.JoinTokens to strict " +
      "(--join-tokens strict), or Orchestrator.NodeManager.ManualApproval (--manual-approval) to decide yourself.",
  ];
}

/** What can be read on the way; nothing over TLS, or when only this machine can be reached. */
export function openTransport({ host, plaintext }: ExposureFacts): readonly string[] {
  if (!plaintext || !isBeyondLoopback(host)) return [];
  return [
    `Everything listens on ${host} in clear text: access tokens, and what replicas of health tell each other, ` +
      "can be read on the way. Set TLS.CertFile and TLS.KeyFile (--tls-cert, --tls-key).",
  ];
}
