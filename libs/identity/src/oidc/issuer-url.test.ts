import { describe, expect, it } from "@jest/globals";
import { issuerProblem, keysUrlProblem } from "./issuer-url.ts";

describe("issuerProblem()", () => {
  it.each([
    "https://login.example",
    "https://login.example/",
    "https://login.example:443/realms/a",
    "https://login.example./realm",
    "https://Login.example",
    "https://[2001:db8::1]/a",
    "http://127.0.0.1:8080",
    "http://localhost:8080/realm",
    "http://[::1]:8080",
  ])("should accept %s", (text) => {
    expect(issuerProblem(text)).toBeNull();
  });

  it.each([
    ["http://login.example", "must begin with https://"],
    ["login.example", "does not begin with https:// or http://"],
    ["ftp://login.example", "its scheme"],
    ["HTTPS://login.example", "write https:// in lower case"],
    ["https://me:hunter2@login.example", "no user and no password"],
    ["https://login.example?x=hunter2", "no query and no fragment"],
    ["https://login.example#x", "no query and no fragment"],
    ["https://[fe80::1%25eth0]", "zone"],
    ["https://b\u00fccher.example", "not in ASCII"],
    ["https://login.example:0", "its port"],
    ["https://127.1", "its IPv4 address is invalid"],
    ["https://login.example/a b", "white space"],
    ["https:login.example", "is not a URL"],
  ])("should refuse %s", (text, problem) => {
    expect(issuerProblem(text)).toContain(problem);
    expect(issuerProblem(text)).not.toContain("hunter2");
  });
});

describe("keysUrlProblem()", () => {
  it("should accept a query, and https in capital letters", () => {
    expect(keysUrlProblem("HTTPS://login.example/keys?p=policy")).toBeNull();
    expect(keysUrlProblem("http://login.example/keys")).toContain("must begin with https://");
    expect(keysUrlProblem("https://login.example/keys#x")).toContain("no fragment");
  });
});
