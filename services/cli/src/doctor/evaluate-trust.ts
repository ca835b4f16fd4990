import type { AgentTrust, ProcessFacts } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { counted } from "../output/text.ts";
import { type Finding, finding, fine } from "./finding.ts";

const PAGE = "docs/how-to/rotate-authority.md";

/** Check whether every agent trusts the authorities that the control plane announces. */
export function evaluateTrust(
  processes: readonly Pick<ProcessFacts, "authorities" | "certificateAuthority">[],
  agents: readonly AgentTrust[],
): readonly Finding[] {
  const announcing = processes.filter(({ authorities }) => authorities.length > 0);
  const announced = [...new Set(announcing.flatMap(({ authorities }) => authorities))];
  const inUse = new Set(announcing.map(({ certificateAuthority }) => certificateAuthority));
  if (announced.length === 0) return [];
  const secured = agents.filter(({ trust }) => trust !== undefined && trust.source !== TrustSource.NONE);
  const total = sum(secured);
  return [
    ...evaluateAgreement(announcing),
    ...announced.map((fingerprint) => {
      const about = { check: "agent-trust", subject: fingerprint };
      const lacking = secured.filter(({ trust }) => trust?.authorities.includes(fingerprint) === false);
      const role = inUse.has(fingerprint) ? "authority in use" : "announced authority";
      if (lacking.length === 0)
        return fine(
          about.check,
          about.subject,
          `${role}: ${total} of ${counted(total, "agent trusts", "agents trust")} it`,
        );
      const most = counted(total, "agent does", "agents do");
      const found = `${role}: ${sum(lacking)} of ${most} not trust it: ${names(lacking)}`;
      return finding("warning", about, found, adviceFor(lacking));
    }),
    ...evaluateSilent(announced, agents),
  ];
}

/** A certificate that is about to replace the current one. */
export interface NextCertificate {
  readonly file: string;
  /** The known authorities that verify the certificate. */
  readonly authorities: readonly string[];
  /** Whether the certificate is valid for this name or address. */
  readonly isFor: (name: string) => boolean;
}

/**
 * Check which agents a certificate would lock out, before it is used.
 *
 * @param streamHosts names and addresses at which agents reach their streams, where they differ from the registry's.
 */
export function evaluateNextCertificate(
  next: NextCertificate,
  agents: readonly AgentTrust[],
  streamHosts: readonly string[] = [],
): readonly Finding[] {
  const about = { check: "next-certificate", subject: next.file };
  const secured = agents.filter(({ trust }) => trust !== undefined && trust.source !== TrustSource.NONE);
  const trusting = (it: AgentTrust) => it.trust?.authorities.some((known) => next.authorities.includes(known)) === true;
  const lost = secured.filter((it) => !trusting(it));
  const misnamed = secured.filter(({ trust }) => trust !== undefined && !next.isFor(trust.serverName));
  const unnamed = secured.length === 0 ? [] : streamHosts.filter((host) => !next.isFor(host));
  const called = [...new Set(misnamed.map(({ trust }) => trust?.serverName ?? ""))].join(", ");
  const silent = agents.filter(({ trust }) => trust === undefined);
  const all = counted(sum(secured), "agent does", "agents do");
  const by = next.authorities.length === 0 ? "an authority that is not announced" : next.authorities.join(" or ");
  const findings = [
    ...(lost.length === 0
      ? []
      : [
          finding(
            "problem",
            about,
            `is signed by ${by}, which ${sum(lost)} of ${all} not trust: ` + `it locks out ${names(lost)}`,
            adviceFor(lost),
          ),
        ]),
    ...(misnamed.length === 0
      ? []
      : [
          finding(
            "problem",
            about,
            `is not valid for ${called}: it locks out ${counted(sum(misnamed), "agent")}: ${names(misnamed)}`,
            "issue it for the former names as well, until no agent uses them (`rollcall node describe`)",
          ),
        ]),
    ...(unnamed.length === 0
      ? []
      : [
          finding(
            "warning",
            about,
            `is not valid for ${unnamed.join(", ")}, which agents' streams use: it locks out agents without ` +
              "--tls-server-name",
            "issue it for these names as well, unless all agents have --tls-server-name",
          ),
        ]),
    ...(silent.length === 0 ? [] : [unreported(about, silent)]),
  ];
  return findings.length > 0
    ? findings
    : [fine(about.check, about.subject, `locks out none of ${counted(sum(secured), "agent")}`)];
}

/**
 * Check that all processes announce the same authorities. Otherwise an agent that moves between processes loses some.
 */
function evaluateAgreement(announcing: readonly Pick<ProcessFacts, "authorities">[]): readonly Finding[] {
  const sets = new Set(announcing.map(({ authorities }) => authorities.toSorted().join()));
  if (sets.size === 1) return [];
  const about = { check: "agent-trust", subject: "control plane" };
  return [
    finding("warning", about, "its processes announce different authorities", "give all of them the same TLS.CAFile"),
  ];
}

/**
 * Report agents that do not report which authorities they trust. This matters only during a rotation, when the control
 * plane announces more than one authority.
 */
function evaluateSilent(announced: readonly string[], agents: readonly AgentTrust[]): readonly Finding[] {
  const silent = agents.filter(({ trust }) => trust === undefined);
  if (announced.length < 2 || silent.length === 0) return [];
  return [unreported({ check: "agent-trust", subject: "agents" }, silent)];
}

function unreported(about: Pick<Finding, "check" | "subject">, silent: readonly AgentTrust[]): Finding {
  const found = `${counted(sum(silent), "agent")} did not report which authorities they trust: ${names(silent)}`;
  return finding("warning", about, found, "find out which file or option makes each of them trust the control plane");
}

function adviceFor(lacking: readonly AgentTrust[]): string {
  const has = (source: TrustSource) => lacking.some(({ trust }) => trust?.source === source);
  return [
    ...(has(TrustSource.ANNOUNCED)
      ? ["keep both authorities in TLS.CAFile, and the current certificate, until these agents have reconnected"]
      : []),
    ...(has(TrustSource.FILE) ? ["add it to the --ca-file of the agents that have one"] : []),
    ...(has(TrustSource.SYSTEM) ? ["add it to the system's trusted authorities where agents rely on those"] : []),
    `see ${PAGE}`,
  ].join("; ");
}

/** Maximum number of node names in a finding. `rollcall node describe` shows which authorities a node trusts. */
const SHOWN_NAMES = 10;

function names(agents: readonly AgentTrust[]): string {
  const shown = agents.flatMap(({ nodeIds }) => nodeIds).slice(0, SHOWN_NAMES);
  const more = sum(agents) - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function sum(agents: readonly AgentTrust[]): number {
  return agents.reduce((total, { nodes }) => total + nodes, 0);
}
