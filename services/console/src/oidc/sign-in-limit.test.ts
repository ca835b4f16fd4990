import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { OidcIssuer } from "@rollcall/identity/oidc";
import { silentLogger } from "@rollcall/process";
import { faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { settle, until } from "@rollcall/testkit/time";
import { createOidcSignIn } from "./oidc-sign-in.ts";

/** Sign-ins that call issuers, and those that wait for that. */
const LIMIT = 8 + 64;

/** The responses that issuers have not sent yet, keyed by the number of the issuer. */
const asked = new Map<string, ServerResponse>();
const issuers = createServer(({ url = "" }, response) => {
  asked.set(url.split("/")[1] ?? "", response);
});
let origin: string;
beforeAll(async () => {
  issuers.listen(0, "127.0.0.1");
  await once(issuers, "listening");
  origin = `http://127.0.0.1:${(issuers.address() as AddressInfo).port}`;
});
afterAll(async () => {
  issuers.closeAllConnections();
  await new Promise((resolve) => issuers.close(resolve));
});

function issuerOf(number: number): OidcIssuer {
  const rest = { audience: "a", clientId: "c", scopes: "openid", roleClaim: "role", roleMap: {}, subjectClaim: "sub" };
  const more = { subjectPrefix: "", subjectRoles: {}, defaultRole: null, caFile: null, jwksUrl: null };
  return { issuer: `${origin}/${number}`, ...rest, ...more };
}

describe("sign-ins at issuers", () => {
  it("should be limited, and leave room for others however they end", async () => {
    const oidc = createOidcSignIn({
      issuers: Array.from({ length: 2_000 }, (_, number) => issuerOf(number)),
      clusterSecret: Buffer.alloc(32, 7),
      authenticate: async () => null,
      clock: { wallMs: () => 0, nowMs: () => 0 },
      log: silentLogger,
    });
    let used = 0;
    const begin = async (): Promise<Use> => {
      // Another issuer each time, because its discovery document is cached.
      const number = `${used}`;
      used += 1;
      const reader = new AbortController();
      let outcome: unknown = null;
      const begun = oidc.begin(`${origin}/${number}`, "http://console", reader.signal).then(
        () => {
          outcome = "begun";
        },
        (error: unknown) => {
          outcome = error;
        },
      );
      await settle();
      if (outcome !== null) throw outcome;
      const respond = (send: (response: ServerResponse) => void) => async () => {
        send(await until("the request", () => asked.get(number)));
        await begun;
      };
      const document = { issuer: `${origin}/${number}`, authorization_endpoint: `${origin}/authorize` };
      return {
        endings: {
          "the issuer's response": respond((response) =>
            response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document)),
          ),
          "an error of the issuer": respond((response) => response.writeHead(500).end()),
          "a broken connection": respond((response) => response.destroy()),
        },
      };
    };
    expect(await faultsAtLimit({ limit: LIMIT, reason: "OVERLOADED", begin })).toEqual([]);
  });
});
