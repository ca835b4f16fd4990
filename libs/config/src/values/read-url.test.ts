import { describe, expect, it } from "@jest/globals";
import { readUrl } from "./read-url.ts";

const NONE = { user: null, password: null, path: "" };

describe("readUrl()", () => {
  const rules = { schemes: ["a", "b"], users: true, paths: true, queries: true };

  it.each([
    ["h", { ...NONE, scheme: null, host: "h", port: null }],
    ["A://H:1", { ...NONE, scheme: "a", host: "h", port: 1 }],
    ["b://u@h", { ...NONE, scheme: "b", user: "u", host: "h", port: null }],
    ["b://u@v@h", { ...NONE, scheme: "b", user: "u@v", host: "h", port: null }],
    ["b://u:@h", { ...NONE, scheme: "b", user: "u", password: "", host: "h", port: null }],
    ["b://u:p%40%3a:q@h", { ...NONE, scheme: "b", user: "u", password: "p@::q", host: "h", port: null }],
    ["b://h/x/y/", { ...NONE, scheme: "b", host: "h", port: null, path: "/x/y" }],
    ["b://h/x?u=v@w/?z", { ...NONE, scheme: "b", host: "h", port: null, path: "/x" }],
    ["b://[::1]/", { ...NONE, scheme: "b", host: "::1", port: null }],
  ])("should read %s", (text, url) => {
    expect(readUrl(text, rules)).toEqual({ ok: true, ...url });
  });

  it.each([
    ["c://h", "its scheme is not a or b"],
    ["b://u:p/q@h", "must be percent-encoded"],
    ["b://u:p#q@h", "must be percent-encoded"],
    ["b://%zz@h", "must be percent-encoded"],
    ["b://h/#x", "it must have no fragment"],
    ["b://h/x y", "white space or a backslash"],
    ["b://h/x\\y", "white space or a backslash"],
    ["b://h\\@i", "must be percent-encoded"],
    ["b://", "it has no host"],
    ["b:/h", "its port must be from 1 to 65535"],
    [`b://${"h".repeat(254)}`, "its host is invalid"],
  ])("should refuse %s", (text, reason) => {
    expect(readUrl(text, rules)).toEqual({ ok: false, reason: expect.stringContaining(reason) });
  });
});
