import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import { loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { openNats } from "./open-nats.ts";
import { planUp } from "./process-plan.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "nats-files-"));
  await writeFile(join(directory, "text.pem"), "no certificate\n");
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Open NATS with these settings, as a start of the control plane does. */
async function open(settings: Readonly<Record<string, string>>): Promise<unknown> {
  const flags = { nats: "nats://127.0.0.1:9", ...settings };
  const { values } = await loadControlPlaneConfig({ shell: { env: {}, cwd: directory }, file: undefined, flags });
  const metrics = undefined as never;
  return openNats(planUp(values), { config: values, instance: "i", clock: systemClock, log: silentLogger, metrics });
}

const missing = ": no such file or directory";
const CERT = "Events.Nats.Tls.CertFile";
const KEY = "Events.Nats.Tls.KeyFile";

describe("openNats()", () => {
  it.each([
    [{ "Events.Nats.CredentialsFile": "gone" }, `cannot read Events.Nats.CredentialsFile, DIR/gone${missing}`],
    [{ "Events.Nats.NkeyFile": "gone" }, `cannot read Events.Nats.NkeyFile, DIR/gone${missing}`],
    [
      { "Events.Nats.Tls.CaFile": "gone" },
      "cannot use Events.Nats.Tls.CaFile, DIR/gone: cannot be read: there is no such file",
    ],
    [
      { "Events.Nats.Tls.CaFile": "text.pem" },
      "cannot use Events.Nats.Tls.CaFile, DIR/text.pem: contains no PEM certificate",
    ],
    [{ [CERT]: "gone", [KEY]: "text.pem" }, `cannot use ${CERT}, DIR/gone: cannot be read: there is no such file`],
    [{ [CERT]: "text.pem", [KEY]: "gone" }, `cannot use ${KEY}, DIR/gone: cannot be read: there is no such file`],
    [{ [CERT]: "text.pem", [KEY]: "." }, `cannot use ${KEY}, DIR: cannot be read: is a directory, not a file`],
  ])("should refuse to start with %j, and name the setting and the file", async (settings, message) => {
    const error = { name: "StartError", message: message.replace("DIR", directory) };
    await expect(open(settings)).rejects.toMatchObject(error);
  });
});
