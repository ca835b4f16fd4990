import { describe, expect, it } from "@jest/globals";
import { parseDockerHost } from "./docker-host.ts";

describe("parseDockerHost()", () => {
  it.each([
    ["unix:///run/engine.sock", "/run/engine.sock"],
    ["/run/engine.sock", "/run/engine.sock"],
  ])("should read %s", (words, path) => {
    expect(parseDockerHost(words)).toEqual({ ok: true, path });
  });

  it.each(["tcp://10.0.0.1:2375", "ssh://host", "engine.sock", ""])("should refuse %j", (words) => {
    expect(parseDockerHost(words).ok).toBe(false);
  });
});
