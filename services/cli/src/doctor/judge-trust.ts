import type { AgentTrust, ProcessFacts } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Finding, finding, fine } from "./finding.ts";

const PAGE = "docs/how-to/rotate-authority.md";

/** Check whether every agent trusts the authorities that the control plane announces. */
export function judgeTrust(
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
    ...judgeAgreement(announcing),
    ...announced.map((fingerprint) => {
      const about = { check: "agent-trust", subject: fingerprint };
      const lacking = secured.filter(({ trust }) => trust?.authorities.includes(fingerprint) === false);
      const role = inUse.has(fingerprint) ? "authority in use" : "announced authority";
      if (lacking.length === 0) return fine(about.check, about.subject, `${role}: all ${total} agents trust it`);
      const found = `${role}: ${sum(lacking)} of ${total} agents do not trust it: ${names(lacking)}`;
      return finding("warning", about, found, adviceFor(lacking));
    }),
    ...judgeSilent(announced, agents),
  ];
}

/** A certificate that is about to replace the present one. */
export interface NextCertificate {
  /** The file that it is in. */
  readonly file: string;
  /** The authorities that verify it, of those that are known. */
  readonly authorities: readonly string[];
  /** Whether it is for this name or address. */
  readonly isFor: (name: string) => boolean;
}

/**
 * Check which agents a certificate would lock out, before it is put to use.
 *
 * @param streamHosts by which names and addresses agents reach their streams, where these differ from the registry's.
 */
export function judgeNextCertificate(
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
  const by = next.authorities.length === 0 ? "an authority that is not announced" : next.authorities.join(" or ");
  const findings = [
    ...(lost.length === 0
      ? []
      : [
          finding(
            "problem",
            about,
            `is signed by ${by}, which ${sum(lost)} of ${sum(secured)} agents do not trust: ` +
              `it locks out ${names(lost)}`,
            adviceFor(lost),
          ),
        ]),
    ...(misnamed.length === 0
      ? []
      : [
          finding(
            "problem",
            about,
            `is not for ${called}: it locks out ${plural(sum(misnamed))}: ${names(misnamed)}`,
            "have it issued for the former names as well, until no agent uses them (`rollcall node describe`)",
          ),
        ]),
    ...(unnamed.length === 0
      ? []
      : [
          finding(
            "warning",
            about,
            `is not for ${unnamed.join(", ")}, where agents' streams lead: it locks out agents without a server name`,
            "have it issued for these names as well, unless all agents have --tls-server-name",
          ),
        ]),
    ...(silent.length === 0 ? [] : [unreported(about, silent)]),
  ];
  return findings.length > 0
    ? findings
    : [fine(about.check, about.subject, `locks out none of ${sum(secured)} agents`)];
}

/** Agents that move between processes must not lose what another one announced. */
function judgeAgreement(announcing: readonly Pick<ProcessFacts, "authorities">[]): readonly Finding[] {
  const sets = new Set(announcing.map(({ authorities }) => authorities.toSorted().join()));
  if (sets.size === 1) return [];
  const about = { check: "agent-trust", subject: "control plane" };
  return [
    finding("warning", about, "its processes announce different authorities", "give all of them the same TLS.CAFile"),
  ];
}

/** As long as there is one authority, nothing is about to change. */
function judgeSilent(announced: readonly string[], agents: readonly AgentTrust[]): readonly Finding[] {
  const silent = agents.filter(({ trust }) => trust === undefined);
  if (announced.length < 2 || silent.length === 0) return [];
  return [unreported({ check: "agent-trust", subject: "agents" }, silent)];
}

function unreported(about: Pick<Finding, "check" | "subject">, silent: readonly AgentTrust[]): Finding {
  const found = `${plural(sum(silent))} did not report which authorities they trust: ${names(silent)}`;
  return finding("warning", about, found, "find out by which file or option each of them trusts the control plane");
}

function adviceFor(lacking: readonly AgentTrust[]): string {
  const has = (source: TrustSource) => lacking.some(({ trust }) => trust?.source === source);
  return [
    ...(has(TrustSource.ANNOUNCED)
      ? ["keep both authorities in TLS.CAFile, and the present certificate, until these agents have connected again"]
      : []),
    ...(has(TrustSource.FILE) ? ["add it to the file of --ca-file on the machines of those that have one"] : []),
    ...(has(TrustSource.SYSTEM) ? ["add it to the trusted authorities of machines whose agents have no option"] : []),
    `see ${PAGE}`,
  ].join("; ");
}

/** Enough to find them; `rollcall node describe` shows what each trusts. */
const SHOWN_NAMES = 10;

function names(agents: readonly AgentTrust[]): string {
  const shown = agents.flatMap(({ nodeIds }) => nodeIds).slice(0, SHOWN_NAMES);
  const more = sum(agents) - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function plural(count: number): string {
  return `${count} ${count === 1 ? "agent" : "agents"}`;
}

function sum(agents: readonly AgentTrust[]): number {
  return agents.reduce((total, { nodes }) => total + nodes, 0);
}
