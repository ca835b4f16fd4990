import { describe, expect, it } from "@jest/globals";
import { parseSelector } from "../labels/parse-selector.ts";
import { evaluateAttempt, MOST_RETRY_AFTER_MS } from "./delivery-outcome.ts";
import { parseNetwork } from "./network.ts";
import { selectsEvent } from "./selects-event.ts";
import { checkWebhookSpec, isAlreadySet, refusedUrl, type WebhookSpec, webhookSetEvent } from "./webhook.ts";

const SPEC: WebhookSpec = {
  ...{ url: "https://ops.example/hook?key=secret", types: [], excludeTypes: [] },
  ...{ labelSelector: "", description: "", paused: false },
};

describe("refusedUrl()", () => {
  it.each([
    "https://ops.example/hook?key=x",
    "https://ops.example:8443",
    "https://8.8.8.8/",
    "https://[2606:4700::1111]/",
  ])("should take %s", (url) => {
    expect(refusedUrl(new URL(url), [])).toBeNull();
  });

  it.each([
    ["http://ops.example/", "https"],
    ["ftp://ops.example/", "https"],
    ["https://user@ops.example/", "must not contain a user"],
    ["https://:pass@ops.example/", "must not contain a user"],
    ["https://ops.example/#part", "must not contain a fragment"],
    ["https://localhost/", "this machine"],
    ["https://LOCALHOST:8443/", "this machine"],
    ["https://app.localhost/", "this machine"],
    ["https://localhost./", "this machine"],
    ["https://127.0.0.1/", "loopback"],
    ["https://0.0.0.0/", "this machine"],
    ["https://0/", "this machine"],
    ["https://2130706433/", "loopback"],
    ["https://0x7f000001/", "loopback"],
    ["https://0177.0.0.1/", "loopback"],
    ["https://127.1/", "loopback"],
    ["https://%31%32%37.0.0.1/", "loopback"],
    ["https://１２７.0.0.1/", "loopback"],
    ["https://169.254.169.254/latest/meta-data/", "metadata"],
    ["https://[::1]/", "loopback"],
    ["https://[::ffff:127.0.0.1]/", "loopback"],
    ["https://[::ffff:a9fe:a9fe]/", "metadata"],
    ["https://[fd00:ec2::254]/", "private"],
    ["https://[fe80::1]/", "link-local"],
  ])("should refuse %s", (url, why) => {
    expect(refusedUrl(new URL(url), [])).toContain(why);
  });

  it("should accept the configured networks", () => {
    const loopback = [parseNetwork("127.0.0.0/8")].filter((it) => it !== null);
    expect(refusedUrl(new URL("https://127.0.0.1:9/"), loopback)).toBeNull();
    expect(refusedUrl(new URL("https://localhost:9/"), loopback)).toBeNull();
    expect(refusedUrl(new URL("https://[::ffff:127.0.0.1]:9/"), loopback)).toBeNull();
    expect(refusedUrl(new URL("https://10.0.0.1/"), loopback)).toContain("private");
  });
});

describe("checkWebhookSpec()", () => {
  it("should name everything that is wrong", () => {
    expect(checkWebhookSpec(SPEC)).toEqual([]);
    const wrong = { ...SPEC, types: ["node.approved", "node.aproved"], excludeTypes: ["x"], labelSelector: "a in" };
    const fields = checkWebhookSpec(wrong).map(({ field }) => field);
    expect(fields).toEqual(["spec.types", "spec.exclude_types", "spec.label_selector"]);
  });
});

describe("isAlreadySet()", () => {
  const facts = { name: "ops", spec: SPEC, pauseReason: null };

  it("should compare the meaning, and resume a webhook that the publisher has paused", () => {
    const types = ["node.approved", "node.rejected"];
    const reversed = { ...facts, spec: { ...SPEC, types: types.toReversed() } };
    expect(isAlreadySet(reversed, { ...SPEC, types: [...types, "node.approved"] })).toBe(true);
    expect(isAlreadySet(facts, { ...SPEC, paused: true })).toBe(false);
    expect(isAlreadySet({ ...facts, pauseReason: "GONE" }, SPEC)).toBe(false);
    const held = { ...SPEC, paused: true };
    expect(isAlreadySet({ ...facts, spec: held, pauseReason: "GONE" }, held)).toBe(true);
  });

  it("should show only the host of a URL to viewers of the log", () => {
    const change = { before: null, host: (url: string) => new URL(url).host, isRotated: true };
    const event = webhookSetEvent(facts, change, { actor: "token:x", message: "" });
    expect(JSON.stringify(event)).not.toContain("secret");
    expect(event.after).toMatchObject({ host: "ops.example" });
  });
});

describe("evaluateAttempt()", () => {
  const answered = (status: number, retryAfter: string | null = null) =>
    evaluateAttempt({ kind: "answered", status, retryAfter });

  it.each([
    [199, "failed"],
    [200, "delivered"],
    [204, "delivered"],
    [299, "delivered"],
    [300, "failed"],
    [307, "failed"],
    [400, "failed"],
    [409, "failed"],
    [410, "gone"],
    [500, "failed"],
  ])("should evaluate %d as %s", (status, kind) => {
    expect(answered(status).kind).toBe(kind);
  });

  it.each([
    [null, 0],
    ["0", 0],
    ["120", 120_000],
    ["999999999", MOST_RETRY_AFTER_MS],
    ["-1", 0],
    ["Wed, 21 Oct 2065 07:28:00 GMT", 0],
  ])("should wait as long as %s says", (retryAfter, retryAfterMs) => {
    expect(answered(503, retryAfter)).toMatchObject({ retryAfterMs });
  });
});

describe("selectsEvent()", () => {
  const parsed = parseSelector("zone=a");
  const selector = parsed.ok ? parsed.selector : [];
  const event = (type: "node.approved" | "node.labels.changed" | "brake.changed", before: object | null = null) => {
    return { type, before: before as null };
  };
  const any = { types: [], excludeTypes: [], selector: [] };
  const zoned = { ...any, selector };
  const inA = new Map([["zone", "a"]]);
  const inB = new Map([["zone", "b"]]);

  it.each([
    ["any", any, event("brake.changed"), null, true],
    ["its type", { ...any, types: ["node.approved"] }, event("node.approved"), null, true],
    ["another type", { ...any, types: ["node.approved"] }, event("brake.changed"), null, false],
    ["an excluded type", { ...any, excludeTypes: ["brake.changed"] }, event("brake.changed"), null, false],
    ["a node of the selection", zoned, event("node.approved"), inA, true],
    ["another node", zoned, event("node.approved"), inB, false],
    ["no node", zoned, event("brake.changed"), inA, false],
    ["a node of which nothing is known", zoned, event("node.approved"), null, true],
    ["a node that leaves", zoned, event("node.labels.changed", { labels: { zone: "a" } }), inB, true],
    ["a node that never was in it", zoned, event("node.labels.changed", { labels: { rack: "a" } }), inB, false],
    // The event shows an earlier change, after which the labels may have matched for a while.
    ["a label that was not there", zoned, event("node.labels.changed", { labels: { zone: null } }), inB, true],
    ["a node that left and moved on", zoned, event("node.labels.changed", { labels: { zone: "c" } }), inB, true],
  ])("should decide about %s", (_, selection, about, labels, isWanted) => {
    expect(selectsEvent(selection, about, labels)).toBe(isWanted);
  });
});
