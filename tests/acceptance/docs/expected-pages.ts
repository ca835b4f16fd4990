import type { Expected } from "../../support/page-commands.ts";

/**
 * Settings of `up` for the tutorial. They are the defaults. With shorter thresholds, a node would be declared
 * unhealthy between two commands on a slow machine.
 */
export const PATIENT: readonly string[] = [
  "Orchestrator.NodeManager.DisconnectTimeout=1m",
  "Orchestrator.NodeManager.UnknownTimeout=5m",
].flatMap((setting) => ["--set", setting]);

/** The expected output of docs/tutorial.md. */
export const TUTORIAL: Expected = [
  ["look", /connected[\s\S]*(pending|approved)/i],
  ["agents", /alpha is connected, healthy[\s\S]*alpha\s[\s\S]*pending[\s\S]*healthy/],
  ["approve", /Ok[\s\S]*approved[\s\S]*rack 7, checked/],
  ["crash", /beta is disconnected[\s\S]*beta\s.*\bhealthy/],
  ["back", /beta is connected[\s\S]*beta\s/],
  ["drain", /drained[\s\S]*Ok/],
  ["end", /node\.drain/],
];

/** The expected output of docs/tutorial-work.md. */
export const WORK: Expected = [
  ["agents", /gamma is approved, connected, healthy/],
  ["service", /web: 2 of 2 ready[\s\S]*ready[\s\S]*on port \d+/],
  ["crash", /web: 2 of 2 ready[\s\S]*lost|replaced/],
  ["back", /connected, healthy[\s\S]*web: 2 of 2 ready/],
  ["drain", /drained/],
  ["run", /^Linux$/m],
  ["end", /^Ok: web /m],
];

/** The ports that docs/first-day.md names. */
export const FIRST_DAY_PORTS = ["7700", "7701", "7790", "7720", "7730", "9090"];

/**
 * The expected output of docs/first-day.md. `before` is the version before the upgrade, and `schema` is what the
 * upgrade reports about the schema.
 */
export function firstDay({ before, schema }: { readonly before: string; readonly schema: string }): Expected {
  return [
    ["folder", /^/],
    ["certificates", /control plane/],
    ["issuer", /^/],
    ["configuration", /ManualApproval\s+true/],
    ["start", /Postgres/],
    ["login", /Logged in to .* as (?:user:)?ana, role admin[\s\S]*user:ana/],
    ["machines", /alpha[\s\S]*pending/i],
    ["approve", /Key[\s\S]*Ok|approved[\s\S]*user:ana/i],
    ["prometheus", /SUCCESS/],
    // The earlier release says "whole".
    ["backup", /The archive is (intact|whole)/],
    ["upgrade", new RegExp(`rollcall ${before}.*rollcall 0\\.1\\.0`, "s")],
    ["alert", /RollcallProcessDown.*firing/],
    ["start-next", new RegExp(`${schema}.*gamma[^\\n]*healthy`, "is")],
    ["upgrade-agents", /3 on 0\.1\.0/],
    ["restore", /gamma.*approved.*healthy/i],
    ["end", /^/],
  ];
}
