import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { loadConfig } from "@rollcall/config";
import { fingerprintOf } from "@rollcall/identity";
import { eventually } from "@rollcall/testkit";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { captureLog } from "@rollcall/testkit/log-capture";
import { agentKeys, checkAgentConfig } from "../config.ts";
import { type RunningAgent, startAgent } from "../start-agent.ts";
import { ConnectProxy } from "../testing/connect-proxy.ts";
import { FakeGrpcServer } from "../testing/fake-grpc-server.ts";
import { listening } from "../testing/listening.ts";
import { TlsFront } from "../testing/tls-front.ts";
import { connectByProxy } from "./tunnel.ts";

const API = "api.rollcall.example:7700";
const STREAMS = "streams.rollcall.example:7701";

let folder: string;
let authority: TestAuthority;
let plane: FakeGrpcServer;
let proxy: ConnectProxy;
let closers: (() => void)[];
let agent: RunningAgent | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-proxy-"));
  authority = new TestAuthority(folder);
  plane = new FakeGrpcServer();
  await plane.listen();
  plane.healthEndpoints = [STREAMS];
  proxy = await ConnectProxy.listen();
  closers = [];
});
afterEach(async () => {
  await agent?.close();
  agent = undefined;
  for (const close of closers) close();
  proxy.close();
  plane.destroy();
  rmSync(folder, { recursive: true, force: true });
});

async function front(name: string): Promise<TlsFront> {
  const { certPem, keyPem } = authority.issue({ names: [name] });
  const served = readFileSync(authority.caFile, "utf8");
  const made = await TlsFront.listen({ certPem, keyPem, served, to: plane.port });
  closers.push(() => made.close());
  return made;
}

/** Start an agent whose environment names the proxy. */
async function start(flags: Record<string, string>, env: Record<string, string> = {}) {
  const result = loadConfig({
    keys: agentKeys,
    flags: { "state-dir": join(folder, "state"), name: "wire-1", ...flags },
    env: { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, ...env },
    check: checkAgentConfig,
  });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const { log, lines } = captureLog();
  agent = await startAgent({ config: result.config.values, version: "0.1.0", log, random: () => 0.02 });
  return lines;
}

const isConnected = () => eventually(() => expect(agent?.status().phase).toBe("connected"));

describe("an agent behind a proxy", () => {
  it("should register and keep its stream through tunnels, over TLS", async () => {
    const [api, streams] = [await front("api.rollcall.example"), await front("streams.rollcall.example")];
    proxy.leads.set(API, api.port).set(STREAMS, streams.port);
    await start({ server: `https://${API}`, "ca-file": authority.caFile });
    await isConnected();
    expect(proxy.asked).toEqual([API, STREAMS]);
    expect([api.passed, streams.passed]).toEqual([1, 1]);
  });

  it("should verify the servers' names, not the proxy's", async () => {
    const [api, streams] = [await front("api.rollcall.example"), await front("127.0.0.1")];
    proxy.leads.set(API, api.port).set(STREAMS, streams.port);
    const lines = await start({ server: `https://${API}`, "ca-file": authority.caFile });
    await eventually(() =>
      expect(lines.find(({ msg }) => msg === "connection failed")?.detail).toContain("does not cover the name"),
    );
    expect(plane.registrations).toHaveLength(1);
    expect(plane.streams).toEqual([]);
  });

  it("should fetch its authority through the proxy too", async () => {
    const [api, streams] = [await front("api.rollcall.example"), await front("streams.rollcall.example")];
    proxy.leads.set(API, api.port).set(STREAMS, streams.port);
    const fingerprint = fingerprintOf(new X509Certificate(readFileSync(authority.caFile)));
    await start({ server: API, "ca-fingerprint": fingerprint });
    await isConnected();
    expect(proxy.asked).toEqual([API, API, STREAMS]);
  });

  it("should use tunnels in clear text too", async () => {
    proxy.leads.set(API, plane.port).set(STREAMS, plane.port);
    await start({ server: API });
    await isConnected();
    expect(proxy.asked).toEqual([API, STREAMS]);
  });

  it("should authenticate if the proxy requires it, and log no credentials", async () => {
    proxy.leads.set(API, plane.port).set(STREAMS, plane.port);
    proxy.credentials = "me:open sesame";
    const flags = { server: API, proxy: `http://me:open%20sesame@127.0.0.1:${proxy.port}` };
    const accepted = await start(flags);
    await isConnected();
    await agent?.close();
    proxy.credentials = "me:changed";
    // The agent is already registered, so the proxy refuses its stream, not its registration.
    const refused = await start(flags);
    await eventually(() =>
      expect(refused.find(({ msg }) => msg === "connection failed")?.detail).toContain(
        `the proxy http://127.0.0.1:${proxy.port} refused to open a tunnel to ${STREAMS}: 407 Proxy Authentication ` +
          "Required; set its user and password in Compute.Proxy",
      ),
    );
    expect(JSON.stringify([accepted, refused])).not.toMatch(/sesame|bWU6/);
  });

  it("should log a refusal during registration, and connect when the proxy allows it", async () => {
    const lines = await start({ server: API });
    await eventually(() =>
      expect(lines.find(({ msg }) => msg === "connection failed")?.detail).toBe(
        `the proxy http://127.0.0.1:${proxy.port} refused to open a tunnel to ${API}: 502 Bad Gateway`,
      ),
    );
    proxy.leads.set(API, plane.port).set(STREAMS, plane.port);
    await isConnected();
  });

  it("should reach NO_PROXY's addresses and this machine without it", async () => {
    plane.healthEndpoints = undefined;
    await start({ server: `127.0.0.1:${plane.port}` });
    await isConnected();
    await agent?.close();
    await start({ server: `localhost:${plane.port}` }, { NO_PROXY: "*" });
    await isConnected();
    expect(proxy.asked).toEqual([]);
  });

  it("should refuse an unsupported proxy, without repeating its password", () => {
    const flags = { proxy: "socks5://me:sesame@a:1" };
    const result = loadConfig({ keys: agentKeys, flags, check: checkAgentConfig });
    const [problem, ...more] = result.ok ? [] : result.problems;
    expect(problem?.message).toContain("should be http://HOST:PORT");
    expect(more).toEqual([]);
    expect(JSON.stringify(problem)).not.toContain("sesame");
  });

  it("should ignore an unsupported proxy in a variable that all programs share, with a warning", async () => {
    const env = { HTTPS_PROXY: "socks5://me:sesame@a:1" };
    const result = loadConfig({ keys: agentKeys, env, check: checkAgentConfig });
    expect(result.ok && result.config.warnings).toEqual([
      {
        where: "environment HTTPS_PROXY",
        path: "Compute.Proxy",
        message: expect.stringContaining("the agent ignores it"),
      },
    ]);
    const own = loadConfig({
      keys: agentKeys,
      env: { ROLLCALL_COMPUTE_PROXY: "socks5://a:1" },
      check: checkAgentConfig,
    });
    expect(own.ok).toBe(false);
    plane.healthEndpoints = undefined;
    await start({ server: `127.0.0.1:${plane.port}` }, env);
    await isConnected();
  });

  it("should use TLS to a proxy that does, and verify its name", async () => {
    const { certPem, keyPem } = authority.issue({ names: ["localhost"] });
    const secure = await ConnectProxy.listen({ cert: certPem, key: keyPem });
    closers.push(() => secure.close());
    const [api, streams] = [await front("api.rollcall.example"), await front("streams.rollcall.example")];
    secure.leads.set(API, api.port).set(STREAMS, streams.port);
    const server = { server: `https://${API}`, "ca-file": authority.caFile };
    const trusting = { ROLLCALL_COMPUTE_PROXYCAFILE: authority.caFile };
    await start(server, { ...trusting, HTTPS_PROXY: `https://localhost:${secure.port}` });
    await isConnected();
    expect(secure.asked).toEqual([API, STREAMS]);
    await agent?.close();
    for (const [host, env] of [
      ["127.0.0.1", trusting],
      ["localhost", {}],
    ] as const) {
      const refused = await start(server, { ...env, HTTPS_PROXY: `https://${host}:${secure.port}` });
      await eventually(() =>
        expect(refused.find(({ msg }) => msg === "connection failed")?.detail).toContain(
          `the proxy https://${host}:${secure.port} cannot be used to reach ${STREAMS}`,
        ),
      );
      await agent?.close();
    }
    expect(secure.asked).toHaveLength(2);
  });
});

describe("connectByProxy()", () => {
  const target = { host: "2001:db8::7", port: 7700 };
  const never = new AbortController().signal;

  it("should write an IPv6 address in brackets", async () => {
    proxy.leads.set("[2001:db8::7]:7700", plane.port);
    const socket = await connectByProxy(
      { proxy: { host: "127.0.0.1", port: proxy.port, isSecure: false, authorization: null }, target },
      never,
    );
    socket.destroy();
    expect(proxy.asked).toEqual(["[2001:db8::7]:7700"]);
  });

  it.each([
    ["closes the connection", "", "cannot be used to reach [2001:db8::7]:7700"],
    ["speaks another language", "SSH-2.0-x\r\n", "cannot be used to reach [2001:db8::7]:7700"],
    ["has the address blocked", "HTTP/1.1 403 Forbidden\r\n\r\n", "403 Forbidden; allow this address at the proxy"],
  ])("should report that the proxy %s", async (_, answer, problem) => {
    const other = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end(answer));
    });
    closers.push(() => other.close());
    const port = await listening(other);
    const way = { proxy: { host: "127.0.0.1", port, isSecure: false, authorization: null }, target };
    await expect(connectByProxy(way, never)).rejects.toThrow(problem);
  });

  it("should stop when aborted, whatever the proxy does", async () => {
    const other = createServer(() => {});
    closers.push(() => other.close());
    const port = await listening(other);
    const leaving = new AbortController();
    const way = { proxy: { host: "127.0.0.1", port, isSecure: false, authorization: null }, target };
    const pending = connectByProxy(way, leaving.signal);
    leaving.abort(new Error("stop"));
    await expect(pending).rejects.toThrow();
  });
});
