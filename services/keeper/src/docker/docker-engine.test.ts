import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import type Docker from "dockerode";
import { DockerEngine, parseDockerHost } from "./docker-engine.ts";
import { ExecCheck } from "./exec-check.ts";

/** These limits are short for the test; a real engine gets 20 s. */
const LIMITS = { quick: 1_000, slow: 1_000 };

/** Ways to cut off a response before it is complete. */
const CUTS: Readonly<Record<string, (answer: ServerResponse) => void>> = {
  "is cut off": (answer) => answer.write('{"Vers', () => answer.destroy()),
  "stops in the middle": (answer) => answer.write('{"Vers'),
  "never begins": () => {},
};

describe("an engine whose answer", () => {
  let root: string;
  let server: Server;
  let engine: DockerEngine;
  let cut: ((answer: ServerResponse) => void) | null;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "rollcall-engine-"));
    const socket = join(root, "socket");
    server = createServer((_, answer) => {
      if (cut === null) answer.end('{"Version":"4.3"}');
      else {
        answer.setHeader("content-length", 100);
        cut(answer);
      }
    });
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    engine = new DockerEngine({ host: `unix://${socket}`, log: silentLogger, limits: LIMITS });
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(root, { recursive: true });
  });

  it.each(Object.keys(CUTS))("%s should be asked again", async (name) => {
    cut = CUTS[name] ?? null;
    await engine.look();
    expect(engine.facts).toBeNull();
    expect(engine.problem).toContain("does not respond");
    cut = null;
    await engine.look();
    expect(engine.facts).toMatchObject({ kind: "docker", version: "4.3" });
    expect([engine.problem, engine.isUnresponsive]).toEqual(["", false]);
  });

  it.each(Object.keys(CUTS))("%s should fail a check", async (name) => {
    cut = CUTS[name] ?? null;
    const check = new ExecCheck(engine);
    expect(await check.run("c1", ["true"], 60_000)).toMatchObject({ passed: false });
  });
});

describe("DockerEngine", () => {
  it("should find the engine again after its library could not be loaded once", async () => {
    await failOnceAtEachCall(
      async (ports) => {
        const { connect } = ports.wrap("library", { connect: async () => fakeClient() });
        const engine = new DockerEngine({ host: "/run/engine.sock", log: silentLogger, connect });
        await ports.attempt(() => engine.client("slow"));
        await engine.look();
        if (engine.facts === null) await engine.look();
        expect(engine.facts).toMatchObject({ version: "4.3" });
      },
      { kinds: ["before"] },
    );
  });
});

/** The part of a client that a scan calls. */
function fakeClient(): Docker {
  const part: Pick<Docker, "version" | "info"> = {
    version: async () => ({ Version: "4.3" }) as Docker.DockerVersion,
    info: async () => ({}),
  };
  return part as Docker;
}

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
