import { readFileSync } from "node:fs";
import { request } from "node:http";
import { findPath } from "@rollcall/identity";
import { isLoopback } from "./addresses.ts";
import { authorityServer } from "./authority-server.ts";
import type { Trust } from "./client-tls.ts";

/** The script that installs the agent and joins it, as the registry serves it. */
export interface JoinScript {
  /** The public key of the registry's certificate, as curl's --pinnedpubkey expects it; null for clear text. */
  readonly pin: string | null;
}

const SCRIPT_PATH = "/join.sh";
const FIND_LIMIT_MS = 3_000;

/**
 * Check whether the registry serves the script to other machines as it does here; null if it does not, if it uses clear
 * text beyond this machine, or if it cannot be reached. The token exists already, so this never fails.
 */
export async function findJoinScript(reached: string, trust: Trust): Promise<JoinScript | null> {
  const url = new URL(reached);
  // The script's options name a server without a path, and the agent would need the name in the certificate as well.
  if (url.pathname !== "/" || trust.serverName !== null) return null;
  const signal = AbortSignal.timeout(FIND_LIMIT_MS);
  try {
    if (url.protocol === "http:") {
      return isLoopback(reached) && (await statusOf(url, signal)) === 200 ? { pin: null } : null;
    }
    const trusted = trust.caFile === null ? undefined : readFileSync(trust.caFile, "utf8");
    const { status, pin } = await findPath({ ...authorityServer(reached, null), trusted }, SCRIPT_PATH, signal);
    return status === 200 ? { pin } : null;
  } catch {
    // Show the command for a machine with an installed agent, which needs nothing from the registry.
    return null;
  }
}

function statusOf(url: URL, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = url;
    const options = { hostname: hostname.replace(/^\[(.*)\]$/, "$1"), port, path: SCRIPT_PATH, method: "HEAD", signal };
    request(options, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}
