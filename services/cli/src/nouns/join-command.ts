import { displayAddress, isLoopback } from "../client/addresses.ts";
import type { AuthorityToShow } from "../client/authority-to-show.ts";
import type { Trust } from "../client/client-tls.ts";

/** What the command that joins a machine depends on. */
export interface JoinCommand {
  /** Base URL of the registry. */
  readonly registry: string;
  readonly trust: Trust;
  readonly authority: AuthorityToShow;
  /** The token's text, or what stands for it. */
  readonly token: string;
}

/** The command that joins a machine, and what has to be known about it. */
export function joinCommand({ registry, trust: { serverName }, authority, token }: JoinCommand): string {
  const flags = [
    `--server ${displayAddress(registry)}`,
    ...authorityFlags(authority),
    ...(serverName === null ? [] : [`--tls-server-name ${quoted(serverName)}`]),
    `--join-token ${token}`,
  ];
  const remarks = [
    ...(authority.kind === "file" ? [`Another machine needs a copy of ${authority.path}.`] : []),
    ...(isLoopback(registry) ? ["Another machine needs an address in --server that leads here."] : []),
    "In --join-token-file or ROLLCALL_JOIN_TOKEN_FILE the token is hidden from the list of processes.",
  ];
  const copy = authority.kind === "text" ? `cat > ${COPIED_CA_FILE} <<'END'\n${authority.pem.trim()}\nEND\n` : "";
  return `${copy}  rollcall agent ${flags.join(" ")}\n\n${remarks.join("\n")}\n`;
}

/** Where the printed command puts the authority's certificate. */
const COPIED_CA_FILE = "rollcall-ca.pem";

function authorityFlags(authority: AuthorityToShow): readonly string[] {
  switch (authority.kind) {
    case "system":
      return [];
    case "fingerprint":
      return [`--ca-fingerprint ${authority.fingerprint}`];
    case "text":
      return [`--ca-file ${COPIED_CA_FILE}`];
    case "file":
      return [`--ca-file ${quoted(authority.path)}`];
  }
}

/** A word of a command line, in quotes where a shell needs them. */
function quoted(word: string): string {
  return /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
