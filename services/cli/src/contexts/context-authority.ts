import { dirname, join } from "node:path";
import { fetchAuthority, parseFingerprint } from "@rollcall/identity";
import { makeDirectory, replaceFile, systemErrorWords } from "@rollcall/process";
import { authorityServer } from "../client/authority-server.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { Failure, UsageError } from "../failure.ts";
import type { GlobalOptions } from "../invocation.ts";
import type { Shell } from "../shell.ts";
import { authorityDirectory } from "./context-file.ts";

/**
 * Fetch the authority with this fingerprint from the server that the options name, without any credentials, and store
 * it next to the contexts. Returns the path of its file. Throws UsageError or Failure.
 */
export async function fetchContextAuthority(shell: Shell, options: GlobalOptions, written: string): Promise<string> {
  const fingerprint = parseFingerprint(written);
  if (fingerprint === null) {
    throw new UsageError(
      `cannot use '${written}' as ca-fingerprint value, should be sha256: and 64 hexadecimal digits`,
    );
  }
  const file = join(authorityDirectory(shell), `${fingerprint.replace("sha256:", "")}.pem`);
  // Setting caFile makes HOST:PORT mean https://. The file is not read before the first call.
  const { addresses } = reachControlPlane(shell, { ...options, caFile: file });
  const serverName = options.tlsServerName || shell.env.ROLLCALL_TLS_SERVER_NAME || null;
  const server = authorityServer(addresses.admin, serverName);
  const pem = await fetchAuthority(server, fingerprint, shell.interrupted).catch((cause: unknown) => {
    const why = Object(cause).message ?? String(cause);
    throw new Failure(`failed to fetch the authority: ${why}`, { cause });
  });
  try {
    await makeDirectory(dirname(file), 0o700);
    await replaceFile(file, pem, 0o600);
  } catch (cause) {
    throw new Failure(`cannot write ${file}: ${systemErrorWords(cause)}`, { cause });
  }
  return file;
}
