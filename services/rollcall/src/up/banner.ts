import { isBeyondLoopback } from "../control-plane/process-plan.ts";

/** What `up` tells about itself once everything runs. */
export interface BannerFacts {
  readonly version: string;
  /** The address that everything listens on. */
  readonly host: string;
  readonly server: string;
  readonly agents: string;
  readonly probes: string;
  readonly dataDirectory: string;
  readonly tokenFile: string;
  readonly manualApproval: boolean;
  /** How to call this program from where the user is. */
  readonly program: string;
}

/** A few lines for people: where everything is, and what to try next. */
export function formatBanner(facts: BannerFacts): string {
  const { program } = facts;
  const lines = [
    "",
    `Rollcall ${facts.version} is up.`,
    "",
    `  API      ${facts.server}`,
    `  agents   ${facts.agents}`,
    `  probes   http://${facts.probes}/readyz and /metrics`,
    `  data     ${facts.dataDirectory}`,
    `  token    ${facts.tokenFile}`,
    "",
    "Next, in another terminal:",
    "",
    `  ${program} node list`,
    `  ${program} node watch`,
    `  ${program} agent --server ${facts.server} --name second --state-dir ${facts.dataDirectory}/second`,
    "",
    ...exposure(facts).map((line) => `${line}\n`),
  ];
  return `${lines.join("\n")}`;
}

/** What must not go unnoticed about who may join; nothing when only this machine can. */
export function exposure({
  host,
  manualApproval,
}: Pick<BannerFacts, "host" | "manualApproval">): readonly string[] {
  if (!isBeyondLoopback(host) || manualApproval) return [];
  return [
    `Everything listens on ${host} and manual approval is off: whoever reaches it may join the fleet. Set Orchestrator.NodeManager.ManualApproval (--manual-approval) to decide yourself.`,
  ];
}
