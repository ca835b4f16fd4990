import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { startTestNats, type TestNats } from "../../../libs/events/src/testing/nats-server.ts";
import {
  DEMO_AUDIENCE,
  DEMO_CLIENT_ID,
  DevelopmentIssuer,
} from "../../../services/rollcall/src/demo/development-issuer.ts";
import { endProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { type CommandPlace, testPage } from "../../support/page-commands.ts";
import { approveLogins, leftOf } from "./page-helpers.ts";

const LIMIT_MS = 120_000;

describe("the commands of the how-to pages about connections", () => {
  let issuer: DevelopmentIssuer;
  let stopApproving: () => void;
  let nats: TestNats;

  beforeAll(async () => {
    issuer = await DevelopmentIssuer.listen(0);
    stopApproving = approveLogins(() => issuer.url, "oscar");
    nats = await startTestNats();
  }, LIMIT_MS);

  afterAll(async () => {
    stopApproving();
    await issuer.close();
    await nats.close();
  }, LIMIT_MS);

  describe("TLS", () => {
    const { place, fixture } = placeOfPage();
    const start = async () => {
      const at = (name: string) => join(place().checkout, name);
      const files = ["--tls-cert", at("server.pem"), "--tls-key", at("server-key.pem"), "--tls-ca", at("ca.pem")];
      await fixture().up("--no-agent", "--join-tokens", "strict", ...files);
    };
    testPage(
      "docs/how-to/tls.md",
      [
        ["certificates", /control plane/],
        ["login", /Logged in to https:.*role admin/],
        ["agent", /tls-1[\s\S]*approved[\s\S]*healthy/],
        ["renew", /certificate/i],
      ],
      place,
      { before: { login: start } },
    );
  });

  describe("OpenID Connect", () => {
    const { place, fixture } = placeOfPage();
    const settings = () => ({
      Issuer: issuer.url,
      Audience: DEMO_AUDIENCE,
      ClientID: DEMO_CLIENT_ID,
      RoleClaim: "groups",
      RoleMap: "sre=admin,oncall=operator,staff=viewer",
    });
    const start = async () => {
      const flags = Object.entries(settings()).flatMap(([key, value]) => ["--set", `OIDC.${key}=${value}`]);
      await fixture().up("--no-agent", ...flags);
    };
    testPage(
      "docs/how-to/oidc.md",
      [
        ["login", /Logged in to .* as oscar, role operator/],
        ["whoami", /user:oscar/],
      ],
      place,
      { before: { login: start } },
    );
  });

  describe("NATS", () => {
    const { place, fixture } = placeOfPage();
    testPage(
      "docs/how-to/nats.md",
      [
        ["status", /NATS/],
        ["republish", /\d/],
      ],
      place,
      { before: { status: () => fixture().up("--no-agent", "--nats", nats.url) } },
    );
  });
});

/** Provide a folder and ports for one page. Each test starts its own `up`. */
function placeOfPage(): { readonly place: () => CommandPlace; readonly fixture: () => UpFixture } {
  let fixture: UpFixture;
  let place: CommandPlace;

  beforeAll(async () => {
    fixture = await createUpFixture();
    place = { checkout: layOutCheckout(fixture.dataDirectory), instead: { "127.0.0.1:7700": fixture.server } };
  }, LIMIT_MS);

  afterAll(async () => {
    for (const pid of await leftOf(place.checkout)) endProcess(pid);
    await fixture.dispose();
    rmSync(place.checkout, { recursive: true, force: true });
  }, LIMIT_MS);

  return { place: () => place, fixture: () => fixture };
}
