import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../support/checkout.ts";
import { type CommandPlace, testPage } from "../support/page-commands.ts";

const START_LIMIT_MS = 120_000;
/** The machines of the pages, with the labels that they give themselves. */
const MACHINES = { "web-1": "role=web", "web-2": "role=web", "gpu-7": "role=train" };

describe("the commands of the how-to pages about nodes", () => {
  let fixture: UpFixture;
  let place: CommandPlace;

  beforeAll(async () => {
    fixture = await createUpFixture();
    place = { checkout: layOutCheckout(fixture.dataDirectory), instead: { "127.0.0.1:7700": fixture.server } };
    await fixture.up("--manual-approval", "--no-agent");
    for (const [name, label] of Object.entries(MACHINES)) fixture.agent(name, "--label", label);
    for (const name of Object.keys(MACHINES)) await fixture.client.becomes(name, "PENDING CONNECTED HEALTHY");
  }, START_LIMIT_MS);

  afterAll(async () => {
    await fixture.dispose();
    rmSync(place.checkout, { recursive: true, force: true });
  }, START_LIMIT_MS);

  const here = () => place;

  testPage(
    "docs/how-to/approve.md",
    [
      ["pending", /gpu-7[\s\S]*web-1[\s\S]*web-2[\s\S]*pending[\s\S]*^id: web-1$/m],
      ["approve", /Ok[\s\S]*web-2/],
      ["reject", /Ok[\s\S]*not in the inventory[\s\S]*Ok/],
      ["ban", /Ok[\s\S]*its disk was stolen[\s\S]*Ok[\s\S]*Ok/],
      ["delete", /Ok[\s\S]*gpu-7[\s\S]*returned to the vendor/],
    ],
    here,
  );

  testPage(
    "docs/how-to/labels.md",
    [
      ["set", /zone=a[\s\S]*operator/i],
      ["remove", /Ok[\s\S]*web-1/],
    ],
    here,
  );

  testPage(
    "docs/how-to/health-policies.md",
    [
      ["list", /unhealthy/i],
      ["preview", /web-1/],
      ["set", /Ok: .* set; \d+ nodes? changed[\s\S]*20s/],
      ["delete", /Ok/],
    ],
    here,
  );

  testPage(
    "docs/how-to/drain.md",
    [
      ["cordon", /Ok[\s\S]*replacing a disk[\s\S]*Ok/],
      ["drain", /drained/],
      ["rack", /web-1[\s\S]*drained[\s\S]*web-2[\s\S]*drained/],
      ["undrain", /web-1[\s\S]*eligible/],
      ["freeze", /frozen/],
    ],
    here,
  );

  testPage(
    "docs/how-to/join-tokens.md",
    [
      ["create", /rollcall agent --server .* --join-token/],
      ["script", /web-\*/],
      ["revoke", /active[\s\S]*Ok[\s\S]*revoked/],
    ],
    here,
  );

  testPage(
    "docs/how-to/troubleshoot.md",
    [
      ["first", /Postgres[\s\S]*web-1/],
      ["brake", /normal/],
    ],
    here,
  );

  testPage(
    "docs/operations.md",
    [
      ["every-day", /nodes/i],
      ["every-week", /admin[\s\S]*\d+:[0-9a-f]{64}/],
    ],
    here,
  );

  testPage("docs/how-to/from-bacalhau.md", [["convert", /ManualApproval: true[\s\S]*DisconnectTimeout: 2m/]], here);
  testPage("docs/how-to/from-kohakuriver.md", [["convert", /DisconnectTimeoutFactor: 6/]], here);
});
