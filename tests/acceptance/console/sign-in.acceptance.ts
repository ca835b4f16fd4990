import { readFileSync } from "node:fs";
import { createServer, request as requestHttp, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { AccessService } from "../../../libs/api/src/gen/rollcall/admin/v1/access_pb.ts";
import { EventService } from "../../../libs/api/src/gen/rollcall/events/v1/events_pb.ts";
import { describeError } from "../../../libs/errors/src/index.ts";
import { eventually } from "../../../libs/testkit/src/index.ts";
import { clientWith, TestBrowser } from "../../../services/console/src/testing/console-rig.ts";
import type { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";

jest.setTimeout(600_000);

// Tests attacks on the sign-in of a complete `up`, with real processes, ports and cookies.
let fixture: UpFixture;
let up: RollcallProcess;
let port: number;
let origin: string;
/** Another server on this machine. Browsers also send it the console's cookies. */
let neighbour: { readonly server: Server; readonly origin: string; readonly cookies: string[] };
beforeAll(async () => {
  fixture = await createUpFixture();
  up = await fixture.up("--no-agent");
  port = Number(fixture.server.split(":")[1]);
  origin = `http://${fixture.server}`;
  neighbour = await startNeighbour();
});
afterAll(async () => {
  neighbour.server.close();
  await fixture.dispose();
});

const adminToken = () => readFileSync(join(fixture.dataDirectory, "admin-token"), "utf8").trim();
const browser = () => new TestBrowser(port, origin);

async function startNeighbour() {
  const cookies: string[] = [];
  const server = createServer((request, response) => {
    cookies.push(request.headers.cookie ?? "");
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const at = typeof address === "object" && address !== null ? address.port : 0;
  return { server, origin: `http://127.0.0.1:${at}`, cookies };
}

/** Return the headers of a page's fetch, with both halves of a session's secret. */
const pageHeaders = (of: TestBrowser) => ({ origin, cookie: cookieHeader(of), "x-rollcall-console": of.proof ?? "" });
const bearing = (token: string) => ({ authorization: `Bearer ${token}` });

function cookieHeader(of: TestBrowser): string {
  return [...of.cookies].map((pair) => pair.join("=")).join("; ");
}

describe("sign-in to the console of a complete up", () => {
  it("should be useless to another port of the machine, which gets only the cookie", async () => {
    const victim = browser();
    expect((await victim.signIn({ accessToken: adminToken() })).status).toBe(200);
    await fetch(neighbour.origin, { headers: { cookie: cookieHeader(victim) } });
    const [stolen = ""] = neighbour.cookies;
    expect(stolen).toContain("rcs_");
    const thief = browser();
    const tries: readonly Record<string, string | undefined>[] = [
      { cookie: stolen },
      { cookie: stolen, "x-rollcall-console": "1" },
      { cookie: stolen, "x-rollcall-console": "B".repeat(43) },
      { cookie: stolen, origin: neighbour.origin, "x-rollcall-console": victim.proof ?? "" },
      { authorization: `Bearer ${stolen.split("=")[1]}` },
    ];
    for (const headers of tries) {
      const { status, reason } = await thief.call("CreateSignInCode", {}, headers);
      expect([status, reason]).toEqual([expect.any(Number), expect.stringMatching(/^(TOKEN_|ORIGIN_)/)]);
      expect(status).toBeGreaterThanOrEqual(400);
    }
  });

  it("should refuse calls under a foreign name that resolves to this machine", async () => {
    for (const [method, path] of [
      ["GET", "/"],
      ["POST", "/rollcall.console.v1.ConsoleService/SignIn"],
    ] as const) {
      const host = "rebound.example:7700";
      const headers = { host, origin: `http://${host}`, "content-type": "application/json" };
      const text = await new Promise<string>((resolve, reject) => {
        const request = requestHttp({ host: "127.0.0.1", port, method, path, headers, agent: false });
        request.once("error", reject).once("response", async (response) => {
          let body = "";
          for await (const chunk of response) body += chunk;
          resolve(body);
        });
        request.end("{}");
      });
      expect(text).toContain("HOST_NOT_ALLOWED");
    }
  });

  it("should limit clients that guess tokens and codes, and let others sign in", async () => {
    const reasons = new Set<string | undefined>();
    for (let count = 0; count < 40; count += 1) {
      reasons.add((await browser().signIn({ accessToken: `guess-${count}-${"x".repeat(20)}` })).reason);
      reasons.add((await browser().signIn({ code: `rcc_guess_${count}` })).reason);
    }
    expect([...reasons].sort()).toEqual(["SIGN_IN_CODE_INVALID", "TOKEN_INVALID", "TOO_MANY_FAILURES"]);
    const known = clientWith(origin, AccessService, bearing(adminToken()));
    expect((await known.whoAmI({})).actor).toMatch(/^token:/);
  });

  it("should end a session's calls and streams within seconds of its token's end", async () => {
    const access = clientWith(origin, AccessService, bearing(adminToken()));
    const { text, accessToken } = await access.createAccessToken({ name: "to be revoked", role: 1 });
    const page = browser();
    // Retry, because earlier guesses from this address may still count.
    await eventually(async () => expect((await page.signIn({ accessToken: text })).status).toBe(200));
    const headers = pageHeaders(page);
    expect((await clientWith(origin, AccessService, headers).whoAmI({})).actor).toBe(`token:${accessToken?.id}`);
    let reason: string | undefined;
    try {
      for await (const _ of clientWith(origin, EventService, headers).watchEvents({})) {
        await access.revokeAccessToken({ id: accessToken?.id ?? "" }).catch(() => {});
      }
    } catch (error) {
      reason = describeError(error).reason;
    }
    expect(reason).toBe("TOKEN_REVOKED");
    expect((await page.call("SignOut")).reason).toBe("TOKEN_REVOKED");
  });

  it("should keep sessions across a restart, and log no secrets", async () => {
    const page = browser();
    await eventually(async () => expect((await page.signIn({ accessToken: adminToken() })).status).toBe(200));
    const log = up.out;
    await up.killed("SIGTERM");
    up = await fixture.up("--no-agent");
    const me = await clientWith(origin, AccessService, pageHeaders(page)).whoAmI({});
    expect(me.sessionId).toMatch(/^[0-9a-f]{12}$/);
    for (const secret of [page.cookie.slice(17), page.proof ?? "", adminToken()]) expect(log).not.toContain(secret);
  });
});
