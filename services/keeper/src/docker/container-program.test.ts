import { describe, expect, it } from "@jest/globals";
import { ownerOfPublished } from "./container-program.ts";

describe("ownerOfPublished()", () => {
  const at = (HostIp: string, HostPort = "20000") => ({ "20000/tcp": [{ HostIp, HostPort }] });

  it.each([
    ["at the container's own address", "172.17.0.2", {}, "own"],
    ["published everywhere", "127.0.0.1", at("0.0.0.0"), "own"],
    ["published by podman, which names no address", "127.0.0.1", at(""), "own"],
    ["published on the loopback", "127.0.0.1", at("127.0.0.1"), "own"],
    ["published at another address", "127.0.0.1", at("10.0.0.7"), "unknown"],
    ["published as another port", "127.0.0.1", at("0.0.0.0", "20001"), "unknown"],
    ["not published", "127.0.0.1", { "20000/tcp": null }, "unknown"],
    ["not exposed", "127.0.0.1", {}, "unknown"],
  ] as const)("should decide by the ports that the engine has published: %s", (_, host, published, kind) => {
    expect(ownerOfPublished(20_000, host, published)).toMatchObject({ kind });
  });
});
