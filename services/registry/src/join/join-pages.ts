import { createReadStream, existsSync, readFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type AgentPackage,
  clusterShortId,
  isNodeId,
  isPackageFor,
  NODE_ID_RULE,
  PACKAGE_PLATFORMS,
  parseAgentPackages,
  parseJoinToken,
  presentedRefusal,
} from "@rollcall/domain";
import { refusalError, refuse, refuseFields } from "@rollcall/errors";
import { bearerOf } from "@rollcall/identity";
import type { Logger } from "@rollcall/process";
import type { HttpPage, PageAnswer, PageCheck } from "@rollcall/rpc";
import { type CallStore, joinTokenHash, provenJoinToken } from "@rollcall/store";
import type { RegistryConfig } from "../config.ts";

/** The script that installs the agent on a machine and joins it. Anyone can read it. */
const SCRIPT_PATH = "/join.sh";
/** Lists the packages for a platform, in the format of SHA256SUMS, to machines with a valid join token. */
const LIST_PATH = "/v1/join/packages";
/** Serves one package of that list. */
const PACKAGE_PATH = "/v1/join/package";

/** Where the script is: next to the bundle, or in a checkout. */
const SCRIPTS = ["../join.sh", "../../../../deploy/package/join.sh"];

const SUMS = "SHA256SUMS";
const MOST_SUMS_BYTES = 1_048_576;
/** The size of the pieces in which a package is read, in bytes. It bounds how long one piece blocks the event loop. */
const PIECE_BYTES = 65_536;

/**
 * Machines behind one address often join together, and share its bandwidth anyway. Each download is a few pieces in
 * memory and one open file.
 */
const PACKAGE_SLOTS = { atATime: 8, mostWaiting: 256, ofCaller: 6, mostWaitingOfCaller: 128 };
const LIST_SLOTS = { atATime: 8, mostWaiting: 256, ofCaller: 4, mostWaitingOfCaller: 128 };
const LIST_DEADLINE_MS = 30_000;
/** Enough for 50 MB at 60 KB/s, including the wait for a slot. */
const PACKAGE_DEADLINE_MS = 900_000;

interface JoinServices {
  readonly store: CallStore & { clusterId(): string };
  readonly config: Pick<RegistryConfig, "Join.PackagesDir">;
  readonly log: Logger;
}

/** Serve what a machine needs to join: the script and the agent's packages. Nothing if no directory is configured. */
export function joinPages(services: JoinServices): readonly HttpPage[] {
  const { "Join.PackagesDir": folder } = services.config;
  if (folder === undefined) return [];
  const admit = admitMachine(services);
  const { log } = services;
  return [
    { path: SCRIPT_PATH, contentType: "text/x-shellscript; charset=utf-8", content: readScript() },
    {
      path: LIST_PATH,
      caller: admit,
      deadlineMs: LIST_DEADLINE_MS,
      limits: LIST_SLOTS,
      answer: async ({ query }) => {
        const packages = packagesFor(await readPackages(folder, log), query.get("platform") ?? "");
        const text = Buffer.from(packages.map(({ sha256, name }) => `${sha256}  ${name}\n`).join(""));
        return { contentType: "text/plain; charset=utf-8", bytes: text.length, pieces: [text] };
      },
    },
    {
      path: PACKAGE_PATH,
      caller: admit,
      deadlineMs: PACKAGE_DEADLINE_MS,
      limits: PACKAGE_SLOTS,
      answer: async ({ query }) => {
        const name = query.get("name") ?? "";
        // Use only names of the list, so that no other file can be read, whatever the name contains.
        const found = (await readPackages(folder, log)).find((it) => it.name === name);
        if (found === undefined) throw refuseFields("INVALID_REQUEST", [{ field: "name", description: NOT_LISTED }]);
        log.info({ node_id: query.get("node"), package: found.name }, "sending the agent's package to a machine");
        return readPackage(join(folder, found.name));
      },
    },
  ];
}

const NOT_LISTED = `is not a package of the agent that ${LIST_PATH} lists`;

function readScript(): Buffer {
  const files = SCRIPTS.map((file) => fileURLToPath(new URL(file, import.meta.url)));
  const file = files.find((it) => existsSync(it));
  if (file === undefined) throw new Error(`the script of ${SCRIPT_PATH} is missing: ${files.join(", ")}`);
  return readFileSync(file);
}

/** Check a machine's join token as a registration does, but without using it. */
function admitMachine({ store }: JoinServices): PageCheck {
  return async ({ authorization, query }) => {
    const nodeId = query.get("node") ?? "";
    if (!isNodeId(nodeId)) {
      throw refuseFields("INVALID_REQUEST", [{ field: "node", description: `is the node's id: ${NODE_ID_RULE}` }]);
    }
    const text = authorization === null ? null : bearerOf(authorization);
    if (text === null) {
      const message = "a join token is required: send it as authorization: Bearer <token>";
      throw refuse("JOIN_TOKEN_REQUIRED", message, { metadata: { node: nodeId } });
    }
    const token = parseJoinToken(text, store.clusterId());
    const row = token.kind === "own" ? await provenJoinToken(store.db, token.id, joinTokenHash(text)) : null;
    const refusal = presentedRefusal({ token, row }, { nodeId, cluster: clusterShortId(store.clusterId()) });
    if (refusal !== null) throw refusalError(refusal, nodeId);
  };
}

/**
 * Read the list of packages each time, because an operator can replace the files while the process runs. The list of a
 * release also names packages that were not copied to the directory: they are left out.
 */
async function readPackages(folder: string, log: Logger): Promise<readonly AgentPackage[]> {
  try {
    const file = join(folder, SUMS);
    const { size } = await stat(file);
    if (size > MOST_SUMS_BYTES) throw new Error(`${file} has ${size} bytes, more than ${MOST_SUMS_BYTES}`);
    return parseAgentPackages(await readFile(file, "utf8")).filter(({ name }) => existsSync(join(folder, name)));
  } catch (err) {
    // Report the files to the operator only: the machine cannot do anything about them.
    log.warn({ err }, "cannot read the list of packages in Join.PackagesDir");
    return [];
  }
}

function packagesFor(packages: readonly AgentPackage[], platform: string): readonly AgentPackage[] {
  if (!isPackageFor(platform)) {
    const description = `is not one of the platforms that have packages: ${PACKAGE_PLATFORMS.join(", ")}`;
    throw refuseFields("INVALID_REQUEST", [{ field: "platform", description }]);
  }
  const found = packages.filter((it) => it.platform === platform);
  if (found.length > 0) return found;
  const given = [...new Set(packages.map((it) => it.platform))];
  const description =
    `${platform} has no package at this control plane, which has ` +
    `${given.length === 0 ? "none at all" : `packages for ${given.join(", ")}`}: add one to Join.PackagesDir there`;
  throw refuseFields("INVALID_REQUEST", [{ field: "platform", description }]);
}

async function readPackage(path: string): Promise<PageAnswer> {
  const { size } = await stat(path);
  return { contentType: "application/octet-stream", bytes: size, pieces: piecesOf(path) };
}

/** Open the file only when the first piece is read, so that it is closed whatever happens to the request. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path, { highWaterMark: PIECE_BYTES });
}
