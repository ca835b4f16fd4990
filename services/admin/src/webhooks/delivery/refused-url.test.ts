import { describe, expect, it } from "@jest/globals";
import { refusedWebhookUrl } from "./refused-url.ts";

describe("refusedWebhookUrl()", () => {
  it.each([
    "https://ops.example/hook?key=x",
    "HTTPS://Ops.example:443",
    "https://ops.example./a/b?c=d@e&f=https://g",
    "https://[2606:4700::1111]:8443/",
    "https://xn--bcher-kva.example/",
  ])("should accept %s", (text) => {
    expect(refusedWebhookUrl(text, [])).toBeNull();
  });

  it.each([
    ["http://ops.example/", "it must start with https://"],
    ["ops.example/hook", "it must start with https://"],
    ["https:ops.example/hook", "it must start with https://"],
    ["https:\\\\ops.example/", "it must start with https://"],
    [" https://ops.example/", "it must start with https://"],
    ["https://ops.example/ ", "it is not a URL"],
    ["https://ops.example/a b", "white space"],
    ["https://ops.exa\nmple/", "its host"],
    ["https://ops.example\\@evil.example/", "no user"],
    ["https://me:hunter2@ops.example/", "must not contain a user or password"],
    ["https://me:hunter2/@ops.example/", "no user"],
    ["https://ops.example/#hunter2", "must not contain a fragment"],
    ["https://[fe80::1%25eth0]/", "zone"],
    ["https://ops.example:0/", "its port"],
    ["https://ops.example:99999/", "its port"],
    ["https://", "it has no host"],
    ["https://b\u00fccher.example/", "not in ASCII"],
    ["https://127.1/", "loopback"],
    ["https://localhost./", "this machine"],
  ])("should refuse %j", (text, reason) => {
    expect(refusedWebhookUrl(text, [])).toContain(reason);
    expect(refusedWebhookUrl(text, [])).not.toContain("hunter2");
  });
});
