import { createHash, randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { DEMO_AUDIENCE, DEMO_CLIENT_ID, DevelopmentIssuer } from "./development-issuer.ts";

/** The fields of responses that tests read. */
interface IssuerAnswer {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri_complete: string;
  readonly id_token: string;
  readonly access_token: string;
  readonly refresh_token: string;
}

const REDIRECT = "http://127.0.0.1:1/signed-in";

describe("DevelopmentIssuer", () => {
  let issuer: DevelopmentIssuer;

  beforeEach(async () => {
    issuer = await DevelopmentIssuer.listen(0);
  });

  afterEach(() => issuer.close());

  const post = (path: string, form: Record<string, string>) =>
    fetch(`${issuer.url}${path}`, { method: "POST", body: new URLSearchParams(form), redirect: "manual" });
  const json = async (response: Promise<Response>): Promise<IssuerAnswer> => Object(await (await response).json());
  const poll = (device: string) => post("/token", { client_id: DEMO_CLIENT_ID, device_code: device });
  const claimsOf = async (token: string, audience: string) => {
    const keys = createRemoteJWKSet(new URL(`${issuer.url}/jwks`));
    return (await jwtVerify(token, keys, { issuer: issuer.url, audience })).payload;
  };

  it("should say which port is in use", async () => {
    const port = Number(new URL(issuer.url).port);
    await expect(DevelopmentIssuer.listen(port)).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port}: address already in use; choose another port with --port`,
    );
  });

  it("should log a device in as the chosen person, and renew the login once per refresh token", async () => {
    const device = await json(post("/device", {}));
    expect(await json(poll(device.device_code))).toEqual({ error: "authorization_pending" });
    expect(await (await fetch(`${issuer.url}/verify`)).text()).toContain(device.device_code);
    expect((await fetch(device.verification_uri_complete)).status).toBe(200);
    expect((await post("/verify", { code: device.user_code, person: "ana" })).status).toBe(200);
    const tokens = await json(poll(device.device_code));
    const person = { email: "ana@example.com", groups: ["sre"] };
    expect(await claimsOf(tokens.access_token, DEMO_AUDIENCE)).toMatchObject(person);
    expect(await claimsOf(tokens.id_token, DEMO_CLIENT_ID)).toMatchObject(person);
    const renewal = { client_id: DEMO_CLIENT_ID, grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    expect((await post("/token", renewal)).status).toBe(200);
    expect((await post("/token", renewal)).status).toBe(400);
    expect((await poll(device.device_code)).status).toBe(400);
  });

  it("should log a browser in, only with the verifier of its challenge", async () => {
    const verifier = randomBytes(32).toString("base64url");
    const query = new URLSearchParams({
      ...{ client_id: DEMO_CLIENT_ID, response_type: "code", redirect_uri: REDIRECT, state: "s1", nonce: "n1" },
      ...{ code_challenge_method: "S256", code_challenge: createHash("sha256").update(verifier).digest("base64url") },
    });
    const signIn = async () => {
      const page = await (await fetch(`${issuer.url}/authorize?${query}`)).text();
      const code = /name="code" value="([^"]+)"/.exec(page)?.[1] ?? "";
      const chosen = await post("/verify", { code, person: "vera" });
      const location = new URL(chosen.headers.get("location") ?? "");
      expect(location.searchParams.get("state")).toBe("s1");
      return location.searchParams.get("code") ?? "";
    };
    const redeem = (code: string, secret: string) =>
      post("/token", { client_id: DEMO_CLIENT_ID, code, redirect_uri: REDIRECT, code_verifier: secret });
    expect((await redeem(await signIn(), "wrong")).status).toBe(400);
    const tokens = await json(redeem(await signIn(), verifier));
    expect(await claimsOf(tokens.id_token, DEMO_CLIENT_ID)).toMatchObject({ sub: "vera", nonce: "n1" });
    expect(await claimsOf(tokens.access_token, DEMO_AUDIENCE)).toMatchObject({ sub: "vera" });
  });

  it.each([
    ["/token", { client_id: "another" }, 401],
    ["/token", { client_id: DEMO_CLIENT_ID, device_code: "none" }, 400],
    ["/verify", { code: "00000000-0000", person: "ana" }, 404],
    ["/token", { client_id: "x".repeat(20_000) }, 400],
    ["/none", {}, 404],
  ] as const)("should refuse %s of %o", async (path, form, status) => {
    expect((await post(path, form)).status).toBe(status);
  });

  it("should forget the oldest logins", async () => {
    const first = await json(post("/device", {}));
    for (let more = 0; more < 100; more += 1) await post("/device", {});
    expect(await json(poll(first.device_code))).toEqual({ error: "expired_token" });
  });
});
