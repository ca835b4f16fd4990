import { readFile } from "node:fs/promises";
import { natsSettings } from "@rollcall/events/config";
import { readClientTls, TlsFileError } from "@rollcall/identity";
import { StartError, systemErrorWords } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";

/**
 * Check that the configured files for NATS can be used. Throws a StartError that names the setting and the file.
 * Without this check only the log would show it, because the connection is made in the background.
 */
export async function checkNatsFiles(config: ControlPlaneConfig): Promise<void> {
  if (natsSettings(config) === null) return;
  for (const key of ["Events.Nats.CredentialsFile", "Events.Nats.NkeyFile"] as const) {
    const file = config[key];
    if (file === undefined) continue;
    try {
      await readFile(file);
    } catch (cause) {
      throw new StartError(`cannot read ${key}, ${file}: ${systemErrorWords(Object(cause))}`, { cause });
    }
  }
  const { "Events.Nats.Tls.CaFile": caFile } = config;
  const { "Events.Nats.Tls.CertFile": certFile, "Events.Nats.Tls.KeyFile": keyFile } = config;
  checkTls("Events.Nats.Tls.CaFile", () => readClientTls({ ...NO_FILES, caFile }));
  const keyOf = (file: string) => (file === keyFile ? "Events.Nats.Tls.KeyFile" : "Events.Nats.Tls.CertFile");
  checkTls(keyOf, () => readClientTls({ ...NO_FILES, certFile, keyFile }));
}

const NO_FILES = { caFile: undefined, certFile: undefined, keyFile: undefined, serverName: undefined };

function checkTls(setting: string | ((file: string) => string), read: () => unknown): void {
  try {
    read();
  } catch (cause) {
    if (!(cause instanceof TlsFileError)) throw cause;
    const key = typeof setting === "string" ? setting : setting(cause.file);
    throw new StartError(`cannot use ${key}, ${cause.message}`, { cause });
  }
}
