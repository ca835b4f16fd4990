import { describe, expect, it } from "@jest/globals";
import { type BannerFacts, formatBanner } from "./banner.ts";

const FACTS: BannerFacts = {
  version: "0.1.0",
  proxied: false,
  host: "127.0.0.1",
  server: "127.0.0.1:7700",
  agents: "127.0.0.1:7701",
  probes: "127.0.0.1:7790",
  dataDirectory: "/data/.rollcall",
  tokenFile: "/data/.rollcall/admin-token",
  caFile: null,
  plaintext: true,
  manualApproval: false,
  joinTokens: "none",
  program: "bin/rollcall",
  secondAgent: "bin/rollcall agent --server 127.0.0.1:7700",
};

describe("formatBanner()", () => {
  it("should show where everything is and what to try next", () => {
    expect(formatBanner(FACTS)).toBe(`
Rollcall 0.1.0 is up.

  API      127.0.0.1:7700
  agents   127.0.0.1:7701
  probes   http://127.0.0.1:7790/readyz and /metrics
  data     /data/.rollcall
  token    /data/.rollcall/admin-token

Next, in another terminal:

  bin/rollcall node list
  bin/rollcall node watch
  bin/rollcall console
  bin/rollcall agent --server 127.0.0.1:7700
`);
  });

  it("should say how others can trust its development certificate", () => {
    const banner = formatBanner({
      ...FACTS,
      server: "https://127.0.0.1:7700",
      probes: "https://127.0.0.1:7790",
      caFile: "/data/tls/ca.pem",
    });
    expect(banner).toContain("  CA       /data/tls/ca.pem\n");
    expect(banner).toContain("  probes   https://127.0.0.1:7790/readyz");
  });

  it("should name the command that makes a join token, if an agent would be refused without one", () => {
    const banner = formatBanner({ ...FACTS, joinTokens: "strict" });
    expect(banner).toContain("  bin/rollcall token create --description second\n");
    expect(banner).not.toContain("bin/rollcall agent");
  });

  it("should fit 80 columns", () => {
    const secondAgent =
      "bin/rollcall agent --server 127.0.0.1:7700 --name second --ca-file /data/.rollcall/ca.pem --state-dir /data/two";
    const banner = formatBanner({ ...FACTS, host: "0.0.0.0", secondAgent });
    expect(banner.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(banner).toContain(`
  bin/rollcall agent --server 127.0.0.1:7700 --name second \\
    --ca-file /data/.rollcall/ca.pem --state-dir /data/two
`);
  });

  it("should end with the important warnings", () => {
    expect(formatBanner(FACTS)).not.toContain("any machine that reaches it");
    expect(formatBanner({ ...FACTS, host: "0.0.0.0" })).toContain("any machine that reaches it");
  });
});
