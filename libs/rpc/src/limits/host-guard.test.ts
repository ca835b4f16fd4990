import { describe, expect, it } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import type { HttpRequest } from "../calls/http-handler.ts";
import { AnonymousLog } from "./anonymous-log.ts";
import { HostGuard, type HostRule } from "./host-guard.ts";

/**
 * Create a guard that lets browsers call only the host "ours". Also returns the requests that were passed to its rule.
 */
function setUp(hasRule = true) {
  const asked: Parameters<HostRule>[0][] = [];
  const { log, lines } = captureLog();
  const metrics = createMetrics({ defaults: false });
  const hosts: HostRule = (request) => {
    asked.push(request);
    return !request.hasBrowserHeaders || request.authority === "ours";
  };
  const guard = new HostGuard({ ...(hasRule ? { hosts } : {}), anonymousClients: new AnonymousLog({ log }), metrics });
  const refusalOf = (headers: Readonly<Record<string, string>>) => {
    const socket = { remoteAddress: "192.0.2.1", remotePort: 5 };
    return guard.refusalOf({ method: "POST", headers, socket } as unknown as HttpRequest);
  };
  return { refusalOf, asked, lines, metrics };
}

describe("HostGuard", () => {
  it("should recognise browsers by headers that only they send, and the host in either protocol", () => {
    const { refusalOf, asked } = setUp();
    refusalOf({ host: "a" });
    refusalOf({ ":authority": "b", host: "a", origin: "http://page" });
    refusalOf({ host: "c", "sec-fetch-site": "cross-site" });
    refusalOf({});
    expect(asked).toEqual([
      { method: "POST", authority: "a", hasBrowserHeaders: false },
      { method: "POST", authority: "b", hasBrowserHeaders: true },
      { method: "POST", authority: "c", hasBrowserHeaders: true },
      { method: "POST", authority: "", hasBrowserHeaders: false },
    ]);
  });

  it("should refuse what the rule refuses, count it, and log it with a truncated name", async () => {
    const { refusalOf, lines, metrics } = setUp();
    expect(refusalOf({ host: "ours", origin: "http://page" })).toBeNull();
    const refusal = refusalOf({ host: "x".repeat(1_000), origin: "http://page" });
    expect(describeError(refusal)).toMatchObject({ reason: "HOST_NOT_ALLOWED", metadata: { host: "x".repeat(260) } });
    expect(lines).toMatchObject([{ level: "warn", peer: "192.0.2.1:5", host: "x".repeat(260) }]);
    expect(await renderMetrics(metrics)).toContain("rollcall_hosts_refused_total 1");
  });

  it("should refuse nothing without a rule", () => {
    expect(setUp(false).refusalOf({ host: "any", origin: "http://page" })).toBeNull();
  });
});
