import { wrap } from "@rollcall/cli";
import { type ExposureFacts, exposure } from "../control-plane/exposure.ts";

/** The facts that the banner of `up` shows. */
export interface BannerFacts extends ExposureFacts {
  readonly version: string;
  /** An address: HOST:PORT, or a URL with TLS. */
  readonly server: string;
  readonly agents: string;
  /** An address: HOST:PORT, or a URL with TLS. */
  readonly probes: string;
  readonly dataDirectory: string;
  readonly tokenFile: string;
  /** The authority that clients must trust; null for clear text, or when clients trust it already. */
  readonly caFile: string | null;
  /** The command that runs this program from the user's directory. */
  readonly program: string;
  /** The command that runs a second agent. */
  readonly secondAgent: string;
}

/** Format a few readable lines: the addresses, and what to try next. */
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
    // Show the command that prints how to join with a token, because an agent without a token would be refused.
    foldCommand(facts.joinTokens === "strict" ? `${program} token create --description second` : facts.secondAgent),
    "",
    ...exposure(facts).map((line) => `${wrap(line, COLUMNS)}\n`),
  ];
  return `${lines.join("\n")}`;
}

/** Width of the banner in columns, which every terminal has. */
const COLUMNS = 80;

/** Indent a command, and fold it before options so that its lines fit; a line break after "\\" keeps it one command. */
function foldCommand(command: string): string {
  const lines: string[] = [];
  for (const part of command.split(/ (?=--)/)) {
    const last = lines.at(-1);
    if (last !== undefined && `  ${last} ${part} \\`.length <= COLUMNS) lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(last === undefined ? part : `  ${part}`);
  }
  return lines.map((line) => `  ${line}`).join(" \\\n");
}
