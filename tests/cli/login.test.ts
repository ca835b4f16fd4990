import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { TestIssuer } from "../../libs/testkit/src/test-issuer.ts";
import { type Outcome, run, type Surroundings } from "../../services/cli/src/testing/run.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const issuer = new TestIssuer();
beforeAll(() => issuer.start());
afterAll(() => issuer.stop());

const rig = useControlPlane(() => ({
  "OIDC.Issuer": issuer.url,
  "OIDC.Audience": issuer.audience,
  "OIDC.ClientID": issuer.clientId,
}));
const without = useControlPlane();
const several = useControlPlane(
  () => ({}),
  `OIDC:
  Issuer: https://a.example
  Audience: a
  ClientID: cli
  MoreIssuers: [{Issuer: https://b.example, Audience: b, ClientID: cli, SubjectPrefix: b}]
`,
);
const HOUR_MS = 3_600_000;

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "rollcall-home-"));
});
afterEach(() => rmSync(home, { recursive: true }));

function cli(line: string, surroundings: Surroundings = {}): Promise<Outcome> {
  return run(line.split(" "), { home, cwd: home, wallMs: () => Date.now(), ...surroundings });
}

function configPath(): string {
  return join(home, ".config/rollcall/config.yaml");
}

function config(): string {
  return readFileSync(configPath(), "utf8");
}

describe("login", () => {
  it("should save a valid token, readable only by its user, and use it from then on", async () => {
    const answer = await cli(`login --server ${rig.address} --token ${rig.token}`);
    expect(answer).toEqual({
      code: 0,
      out: `Logged in to ${rig.address} as admin, role admin: context 127.0.0.1\n`,
      err: `saved in ${configPath()}\n`,
    });
    expect(statSync(configPath()).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, ".config/rollcall")).mode & 0o777).toBe(0o700);
    expect((await cli("whoami")).out).toContain("context  127.0.0.1\n");
    expect((await cli("node list")).code).toBe(0);
  });

  it("should read the token from standard input", async () => {
    const { code } = await cli(`login --server ${rig.address}`, { input: `${rig.token}\n` });
    expect(code).toBe(0);
    expect(config()).toContain(`token: ${rig.token}`);
  });

  it("should keep the path of a token's file, not its content", async () => {
    writeFileSync(join(home, "token"), `${rig.token}\n`);
    const { code } = await cli(`login --server ${rig.address} --token-file token`);
    expect(code).toBe(0);
    expect(config()).toContain(`token_file: ${join(home, "token")}`);
    expect(config()).not.toContain(rig.token);
    expect((await cli("whoami")).code).toBe(0);
  });

  it("should save no invalid token, and ask for one when there is none", async () => {
    const wrong = await cli(`login --server ${rig.address} --token wrong`);
    expect(wrong).toMatchObject({ code: 1, err: expect.stringMatching(/^failed to log in: /) });
    expect(() => config()).toThrow("ENOENT");
    expect(await cli(`login --server ${rig.address}`)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^no access token given/),
    });
  });

  it("should keep the addresses of services apart", async () => {
    const apart = `--registry ${rig.address} --health 127.0.0.1:1 --admin ${rig.address}`;
    await cli(`login --context apart ${apart} --token ${rig.token}`);
    expect(config()).toMatch(/apart:\n {4}registry: .*\n {4}health: http:\/\/127.0.0.1:1\n/);
  });

  it("should refuse an invalid name", async () => {
    const { code, err } = await cli(`login --context a/b --token ${rig.token}`);
    expect(code).toBe(2);
    expect(err).toContain("cannot use 'a/b' as context value");
  });

  it("should report an error in the file only to verbs that need it", async () => {
    await cli(`login --server ${rig.address} --token ${rig.token}`);
    writeFileSync(configPath(), "contexts: [");
    expect((await cli("version")).code).toBe(0);
    const { code, err } = await cli("whoami");
    expect(code).toBe(1);
    expect(err).toMatch(/^cannot parse .*config.yaml: /);
  });
});

describe("contexts", () => {
  beforeEach(async () => {
    await cli(`login --context one --server ${rig.address} --token ${rig.token}`);
    await cli(`login --context two --server ${rig.address} --token ${rig.token}`);
  });

  it("should be listed, used, shown, renamed and deleted", async () => {
    const url = `http://${rig.address}`;
    expect((await cli("context list")).out.split("\n").map((it) => it.trim())).toEqual([
      expect.stringMatching(/^CURRENT +NAME +SERVER +LOGIN$/),
      `one   ${url}  token`,
      `*        two   ${url}  token`,
      "",
    ]);
    expect((await cli("context use one")).out).toBe("Using context one\n");
    expect((await cli("context show")).out).toContain("name     one\n");
    expect((await cli("context rename one prod")).out).toBe("Renamed context one to prod\n");
    expect((await cli("whoami")).out).toContain("context  prod\n");
    expect((await cli("context delete prod")).code).toBe(0);
    const { out } = await cli("context list --output json");
    expect(JSON.parse(out)).toEqual([{ current: false, name: "two", server: url, login: "token" }]);
    expect(await cli("context show")).toMatchObject({ code: 1 });
  });

  it("should never show a token", async () => {
    for (const line of ["context list", "context show one", "context show one --output yaml"]) {
      expect((await cli(line)).out).not.toContain(rig.token);
    }
  });

  it.each(["context use x", "context show x", "context delete x", "context rename x y"])(
    "should refuse '%s'",
    async (line) => {
      const { code, err } = await cli(line);
      expect(code).toBe(1);
      expect(err).toMatch(/^there is no context 'x'\nhint: /);
    },
  );

  it("should not be renamed to an existing one", async () => {
    expect(await cli("context rename one two")).toMatchObject({
      code: 1,
      err: "context 'two' already exists\n",
    });
  });

  it("should count less than the environment, unless named", async () => {
    const env = { ROLLCALL_SERVER: "127.0.0.1:1" };
    expect((await cli("whoami", { env })).err).toContain("127.0.0.1:1");
    expect((await cli("whoami --context one", { env })).out).toContain("context  one\n");
    const chosen = { ROLLCALL_CONTEXT: "one" };
    expect((await cli("whoami", { env: chosen })).out).toContain("context  one\n");
    expect((await cli("whoami --context x")).err).toMatch(/^there is no context 'x'/);
    const wrong = { ROLLCALL_TOKEN: "wrong" };
    expect((await cli("whoami", { env: wrong })).code).toBe(1);
    expect((await cli("whoami --context one", { env: wrong })).code).toBe(0);
  });

  it("should send their token nowhere else", async () => {
    const elsewhere = rig.address.replace("127.0.0.1", "localhost");
    const { code, err } = await cli(`whoami --server ${elsewhere}`);
    expect(code).toBe(1);
    expect(err).toContain("an access token is required");
  });

  it("should forget the token at logout, and revoke it on request", async () => {
    const { out } = await cli("access create mine --role viewer");
    await cli(`login --context two --server ${rig.address} --token ${out.trim()}`);
    expect((await cli("whoami")).out).toMatch(/^role +viewer$/m);
    expect((await cli("logout --revoke")).out).toBe("Logged out of context two\n");
    const id = /^rc_([0-9a-f]{12})_/.exec(out)?.[1];
    expect((await rig.run("access list --all -o csv")).out).toContain(`${id},mine,viewer,REVOKED`);
    expect((await cli("whoami")).err).toContain("an access token is required");
    expect((await cli("whoami --context one")).code).toBe(0);
  });

  it("should be completed by name", async () => {
    expect((await cli("__complete context use o")).out).toBe("one\tcontext\n");
    expect((await cli("__complete --context t")).out).toBe("two\tcontext\n");
  });
});

describe("login --oidc", () => {
  beforeEach(() => {
    issuer.tokenLifeS = 3_600;
  });

  async function logIn(decision: "approved" | "denied" = "approved"): Promise<Outcome> {
    const onError = (all: string) => {
      if (all.includes("confirm the code WDJB-MJHT")) issuer.decideLogin(decision);
    };
    return cli(`login --oidc --server ${rig.address}`, { onError });
  }

  it("should keep a login that was confirmed in a browser", async () => {
    const { code, out, err } = await logIn();
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringMatching(/^Logged in to /) });
    expect(err).toContain(`${issuer.url}/verify?code=WDJB-MJHT\n`);
    expect(config()).toMatch(/refresh_token: refresh-\d+/);
    expect((await cli("whoami")).code).toBe(0);
    expect((await cli("context list")).out).toContain(`issuer ${issuer.url}`);
  });

  it("should renew an expired login once, and save the result", async () => {
    await logIn();
    const before = config();
    // Two hours later, the first token has expired, but the refresh token has not.
    issuer.tokenLifeS = (3 * HOUR_MS) / 1_000;
    const later = { wallMs: () => Date.now() + 2 * HOUR_MS };
    const asked = issuer.count("POST /token");
    expect((await cli("node list", later)).code).toBe(0);
    expect(issuer.count("POST /token")).toBe(asked + 1);
    expect(config()).not.toBe(before);
    expect((await cli("node list", later)).code).toBe(0);
    expect(issuer.count("POST /token")).toBe(asked + 1);
  });

  it("should report that a login has ended, or that the issuer is unavailable", async () => {
    await logIn();
    const later = { wallMs: () => Date.now() + 2 * HOUR_MS };
    issuer.away = true;
    const { err } = await cli("whoami", later);
    expect(err).toContain("cannot reach the issuer");
    // The message must not mention certificates, because they are not the cause.
    expect(err).not.toContain("NODE_EXTRA_CA_CERTS");
    issuer.away = false;
    issuer.forgetLogins();
    expect((await cli("whoami", later)).err).toContain(
      "the login of context 127.0.0.1 has expired: log in again with `rollcall login --oidc --context 127.0.0.1`",
    );
  });

  it("should store nothing of a login whose token is too long or has a time out of range", async () => {
    const { claims } = issuer;
    try {
      issuer.claims = {
        ...claims,
        groups: Array.from({ length: 1_000 }, (_, index) => `a-group-with-a-name-${index}`),
      };
      expect((await logIn()).err).toMatch(/issued a token of \d+ characters; servers accept at most 16384\nhint: /);
      issuer.claims = { ...claims, exp: 1e300 };
      expect((await logIn()).err).toMatch(/its claim exp is not a time/);
    } finally {
      issuer.claims = claims;
    }
    expect(() => config()).toThrow("ENOENT");
  });

  it("should save nothing of a refused login", async () => {
    const { code, err } = await logIn("denied");
    expect(code).toBe(1);
    expect(err).toContain(`the issuer ${issuer.url} refused the login: access_denied\n`);
    expect(() => config()).toThrow("ENOENT");
  });

  it("should say that there is no issuer, and ask which of several", async () => {
    expect((await cli(`login --oidc --server ${without.address}`)).err).toMatch(
      /does not offer login through an OpenID Connect issuer\nhint: /,
    );
    expect(await cli(`login --oidc --server ${several.address}`)).toMatchObject({
      code: 2,
      err: "choose an issuer with --issuer, one of: https://a.example https://b.example\n",
    });
    expect(await cli(`login --oidc --issuer https://b.example --server ${rig.address}`)).toMatchObject({
      code: 2,
      err: `choose an issuer with --issuer, one of: ${issuer.url}\n`,
    });
  });
});
