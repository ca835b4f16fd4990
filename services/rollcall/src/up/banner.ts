import { type ExposureFacts, exposure } from "../control-plane/exposure.ts";

/** What `up` tells about itself once everything runs. */
export interface BannerFacts extends ExposureFacts {
  readonly version: string;
  /** HOST:PORT, or a URL when it speaks TLS. */
  readonly server: string;
  readonly agents: string;
  /** HOST:PORT, or a URL when it speaks TLS. */
  readonly probes: string;
  readonly dataDirectory: string;
  readonly tokenFile: string;
  /** The authority that clients must trust; null when they do, or in clear text. */
  readonly caFile: string | null;
  /** How to call this program from where the user is. */
  readonly program: string;
  /** How to run another agent beside that of `up`. */
  readonly secondAgent: string;
}

/** A few lines for people: where everything is, and what to try next. */
export function formatBanner(facts: BannerFacts): string {
  const { program, caFile } = facts;
  const probes = facts.probes.includes("://") ? facts.probes : `http://${facts.probes}`;
  const lines = [
    "",
    `Rollcall ${facts.version} is up.`,
    "",
    `  API      ${facts.server}`,
    `  agents   ${facts.agents}`,
    `  probes   ${probes}/readyz and /metrics`,
    `  data     ${facts.dataDirectory}`,
    `  token    ${facts.tokenFile}`,
    ...(caFile === null ? [] : [`  CA       ${caFile}`]),
    "",
    "Next, in another terminal:",
    "",
    `  ${program} node list`,
    `  ${program} node watch`,
    `  ${program} console`,
    // Without a token it would be refused, and that command prints how to join with one.
    `  ${facts.joinTokens === "strict" ? `${program} token create --description second` : facts.secondAgent}`,
    "",
    ...exposure(facts).map((line) => `${line}\n`),
  ];
  return `${lines.join("\n")}`;
}
