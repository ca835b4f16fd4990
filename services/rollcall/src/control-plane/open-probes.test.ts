import { expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import { openProbes } from "./open-probes.ts";

const PLAN = {
  name: "registry",
  services: ["registry"],
  host: "127.0.0.1",
  port: 0,
  probePort: 0,
} as const;

it("openProbes() should tell alive from ready, from before there is a record until the end", async () => {
  const probes = await openProbes({ plan: PLAN, clock: systemClock, log: silentLogger });
  const probe = async (path: string) => (await fetch(`http://127.0.0.1:${probes.port}${path}`)).status;
  expect([await probe("/livez"), await probe("/readyz")]).toEqual([200, 503]);
  probes.answerWith(() => ({ record: { ok: true, message: "open" } }));
  expect([await probe("/livez"), await probe("/readyz")]).toEqual([200, 200]);
  await probes.close();
});
