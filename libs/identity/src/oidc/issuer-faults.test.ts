import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { failOnceAtEachCall, type Ports } from "@rollcall/testkit/faults";
import { TestIssuer } from "@rollcall/testkit/issuer";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { fetchJson } from "./fetch-whole.ts";
import { createOidcVerifier, type OidcVerifier } from "./oidc-verifier.ts";

/** How long a client waits after a failure before it tries again, in milliseconds. */
const PAUSE_MS = 5_000;

describe("an issuer whose answers fail", () => {
  let issuer: TestIssuer;
  let fetches: Promise<unknown>[];

  beforeEach(async () => {
    issuer = new TestIssuer();
    await issuer.start();
  });

  afterEach(() => issuer.stop());

  function verifier(ports: Ports, clock: ManualClock): OidcVerifier {
    const { url, audience } = issuer;
    const port = ports.wrap("issuer", { fetch: fetchJson });
    const fetch: typeof fetchJson = (...input) => {
      const fetched = port.fetch(...input);
      fetches.push(fetched.catch(() => {}));
      return fetched;
    };
    const options = { issuer: url, audience, jwksUrl: null, caFile: null };
    return createOidcVerifier({ issuer: options, clock, log: silentLogger, fetch });
  }

  /** Verify a token as a client does: after a refusal, it waits for the time that the refusal names. */
  async function verified(verify: OidcVerifier, text: string, clock: ManualClock): Promise<string> {
    const first = await verify(text).catch(() => null);
    if (first !== null) return first.kind;
    clock.advance(PAUSE_MS);
    return (await verify(text)).kind;
  }

  it.each([1, 2])("should verify tokens soon after %s failures, also of a new key", async (times) => {
    const scenario = async (ports: Ports) => {
      const clock = new ManualClock();
      fetches = [];
      const verify = verifier(ports, clock);
      const token = () => issuer.token({}, { nowMs: clock.wallMs() });
      expect(await verified(verify, await token(), clock)).toBe("valid");
      clock.advance(PAUSE_MS);
      await issuer.addKey();
      expect(await verified(verify, await token(), clock)).toBe("valid");
      // Fresh keys are fetched in the background, and a failure does not end the use of the old ones.
      clock.advance(700_000);
      expect(await verified(verify, await token(), clock)).toBe("valid");
      // Wait for the fetches in the background, each of which can be followed by another.
      for (const fetched of fetches) {
        await fetched;
        await settle();
      }
      clock.advance(PAUSE_MS);
      expect((await verify(await token())).kind).toBe("valid");
    };
    const calls = await failOnceAtEachCall(scenario, { times });
    expect(calls.length).toBeGreaterThanOrEqual(4);
  });
});
