import { readFileSync } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError } from "@rollcall/errors";
import { createTestDatabase, eventually, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { freePorts } from "./testing/free-ports.ts";
import { RollcallProcess } from "./testing/rollcall-process.ts";
import { createServeFixture, type ServeFixture } from "./testing/serve-fixture.ts";

let database: TestDatabase;
let fixture: ServeFixture;
let origin: string;
let together: RollcallProcess;
beforeAll(async () => {
  database = await createTestDatabase();
  fixture = await createServeFixture(database.url);
  together = await fixture.serveTogether();
  const [port = 0, probePort = 0] = await freePorts(2);
  origin = `http://127.0.0.1:${port}`;
  const ports = ["--port", port, "--probe-port", probePort].map(String);
  const words = ["serve", "console", ...ports, "--upstream", `http://${fixture.addresses.registry}`];
  const served = new RollcallProcess(words, { DATABASE_URL: database.url });
  await served.logged("serving");
});
afterAll(async () => {
  await fixture.dispose();
  await database.drop();
});

const adminToken = () => readFileSync(fixture.tokenFile, "utf8").trim();

/** A browser's client, over Connect or gRPC-Web. */
class Browser {
  #cookie = "";
  #proof = "";

  client<S extends DescService>(service: S, isGrpcWeb = false): Client<S> {
    const carry: Interceptor = (next) => async (request) => {
      request.header.set("origin", origin);
      if (this.#cookie !== "") request.header.set("cookie", this.#cookie);
      if (this.#proof !== "") request.header.set("x-rollcall-console", this.#proof);
      const answer = await next(request);
      const [pair] = (answer.header.get("set-cookie") ?? "").split(";", 1);
      if (pair) this.#cookie = pair;
      return answer;
    };
    const options = { baseUrl: origin, httpVersion: "1.1" as const, interceptors: [carry] };
    return createClient(service, isGrpcWeb ? createGrpcWebTransport(options) : createConnectTransport(options));
  }

  async signIn(token: string): Promise<string> {
    const credential = { case: "accessToken" as const, value: token };
    const { proof, sessionId } = await this.client(ConsoleService).signIn({ credential });
    this.#proof = proof;
    return sessionId;
  }
}

describe("serve console", () => {
  it("should handle sign-in, and forward the calls of pages to the services with the methods", async () => {
    const browser = new Browser();
    const sessionId = await browser.signIn(adminToken());
    for (const isGrpcWeb of [false, true]) {
      const me = await browser.client(AccessService, isGrpcWeb).whoAmI({});
      expect(me).toMatchObject({ sessionId, actor: expect.stringMatching(/^token:/) });
      // The console passes errors through unchanged.
      const refusal = await refusalOf(browser.client(RegistryService, isGrpcWeb).getNode({ node: "nothing" }));
      expect(refusal.reason).toBe("NODE_NOT_FOUND");
    }
    expect(await refusalOf(new Browser().client(AccessService).whoAmI({}))).toMatchObject({ reason: "TOKEN_MISSING" });
  });

  it.each([false, true])(
    "should forward streams, and end them when their session is revoked (gRPC-Web: %s)",
    async (isGrpcWeb) => {
      const [browser, admin] = [new Browser(), new Browser()];
      await admin.signIn(adminToken());
      const { text } = await admin.client(AccessService).createAccessToken({ name: "a viewer", role: 1 });
      const id = await browser.signIn(text);
      const stream = browser.client(RegistryService, isGrpcWeb).watchNodes({});
      let hasSnapshot = false;
      let reason: string | undefined;
      try {
        for await (const { snapshotComplete } of stream) {
          if (!snapshotComplete) continue;
          hasSnapshot = true;
          await admin.client(AccessService).revokeAccessToken({ id });
        }
      } catch (error) {
        reason = describeError(error).reason;
      }
      expect(hasSnapshot).toBe(true);
      expect(reason).toBe("TOKEN_REVOKED");
      expect((await refusalOf(browser.client(AccessService).whoAmI({}))).reason).toBe("TOKEN_REVOKED");
    },
  );

  it("should let only an admin list sessions, with their owners", async () => {
    const browser = new Browser();
    const id = await browser.signIn(adminToken());
    const { accessTokens } = await browser.client(AccessService).listAccessTokens({});
    expect(accessTokens.find((it) => it.id === id)).toMatchObject({ kind: 2, name: "console from 127.0.0.1" });
  });

  it("should report an unreachable service, and continue when it returns", async () => {
    const browser = new Browser();
    await browser.signIn(adminToken());
    await together.killed("SIGTERM");
    const refusal = await refusalOf(browser.client(AccessService).whoAmI({}));
    expect(refusal).toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", retryAfterMs: 2_000 });
    together = await fixture.serveTogether();
    await eventually(async () => expect((await browser.client(AccessService).whoAmI({})).actor).toMatch(/^token:/));
  });
});

describe("serve console without an address", () => {
  it("should say what it needs", async () => {
    const alone = new RollcallProcess(["serve", "console"], { DATABASE_URL: database.url });
    expect(await alone.exit()).toBe(2);
    expect(alone.err).toContain("set --upstream to the URL of the API");
  });

  it("should refuse to forward tokens in clear text over a network", async () => {
    const words = ["serve", "console", "--upstream", "http://rollcall.example:7700"];
    const refused = new RollcallProcess(words, { DATABASE_URL: database.url });
    expect(await refused.exit()).toBe(2);
    expect(refused.err).toContain("Console.Upstream is http://rollcall.example:7700");
    expect(refused.err).toContain("--insecure-plaintext");
  });
});
