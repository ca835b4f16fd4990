import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { formatAddress } from "../../libs/config/src/value-types.ts";
import { readDuration } from "../../libs/config/src/values/duration.ts";
import { readBytes, readMillicores } from "../../libs/config/src/values/quantity.ts";
import { readServerAddress } from "../../libs/config/src/values/server-address.ts";
import { networkProblem, readNetwork } from "../../libs/domain/src/webhooks/network.ts";
import { readNatsUrl } from "../../libs/events/src/nats-url.ts";
import { issuerProblem } from "../../libs/identity/src/oidc/issuer-url.ts";
import { refusedWebhookUrl } from "../../services/admin/src/webhooks/delivery/refused-url.ts";
import { workspaceRoot } from "../support/workspace.ts";

const PAGE = readFileSync(join(workspaceRoot, "docs/written-values.md"), "utf8");

/** The parser of each section's values. It computes the second column of the table. */
const READERS: Readonly<Record<string, (text: string) => string>> = {
  "Server addresses": (text) => {
    const read = readServerAddress(text);
    if (!read.ok) return `refused: ${read.reason}`;
    const { scheme } = read.address;
    return `${scheme === undefined ? "" : `${scheme}://`}${formatAddress(read.address)}`;
  },
  NATS: (text) => {
    const read = readNatsUrl(text);
    return read.ok ? String(read.url) : `refused: ${read.reason}`;
  },
  "OpenID Connect issuers": (text) => liveUnless(issuerProblem(text), text),
  Webhooks: (text) => liveUnless(refusedWebhookUrl(text, []), text),
  Networks: (text) => {
    const read = readNetwork(text);
    return read.ok ? `${read.network.bytes.join(".")}/${read.network.bits}` : `refused: ${networkProblem(text)}`;
  },
  Durations: (text) => {
    const read = readDuration(text);
    return read.ok ? `${read.ms}ms` : `refused: ${read.problem}`;
  },
  Bytes: (text) => {
    const read = readBytes(text);
    return read.ok ? String(read.value) : `refused: ${read.problem}`;
  },
  Processors: (text) => {
    const read = readMillicores(text);
    return read.ok ? `${read.value}m` : `refused: ${read.problem}`;
  },
};

function liveUnless(problem: string | null, text: string): string {
  return problem === null ? text : `refused: ${problem}`;
}

describe("docs/written-values.md", () => {
  const sections = PAGE.split(/^## /m).slice(1);

  it("should have a table for each kind", () => {
    expect(sections.map((section) => section.split("\n", 1)[0])).toEqual(Object.keys(READERS));
  });

  it.each(
    sections.flatMap((section) => {
      const [kind = ""] = section.split("\n", 1);
      const rows = [...section.matchAll(/^\| `([^`]+)` \| (?:`([^`]+)`|refused: (.+)) \|$/gm)];
      return rows.map(([, text = "", value = "", reason]) => [kind, text, value, reason] as const);
    }),
  )("should be right about %s: %s", (kind, text, value, reason) => {
    const read = READERS[kind]?.(text);
    if (reason === undefined) expect(read).toBe(value);
    else expect(read).toMatch(/^refused: /);
    if (reason !== undefined) expect(read).toContain(reason);
    expect(read).not.toContain("secret");
  });
});
