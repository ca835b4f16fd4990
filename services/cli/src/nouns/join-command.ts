import { displayAddress, isLoopback } from "../client/addresses.ts";
import type { AuthorityToShow } from "../client/authority-to-show.ts";
import type { Trust } from "../client/client-tls.ts";

/** The parts of the command that joins a machine. */
export interface JoinCommand {
  /** Base URL of the registry. */
  readonly registry: string;
  readonly trust: Trust;
  readonly authority: AuthorityToShow;
  /** The token's text, or a placeholder. */
  readonly token: string;
}

/** Format the command that joins a machine, with remarks about it. */
export function joinCommand({ registry, trust: { serverName }, authority, token }: JoinCommand): string {
  const flags = [
    `--server ${displayAddress(registry)}`,
    ...authorityFlags(authority),
    ...(serverName === null ? [] : [`--tls-server-name ${quoted(serverName)}`]),
    `--join-token ${token}`,
  ];
  const remarks = [
    ...(authority.kind === "file" ? [`Other machines need a copy of ${authority.path}.`] : []),
    ...(isLoopback(registry)
      ? ["On other machines, replace the address in --server with one that reaches this machine."]
      : []),
    "Use --join-token-file or ROLLCALL_JOIN_TOKEN_FILE to hide the token from the list of processes.",
  ];
  const copy = authority.kind === "text" ? `cat > ${COPIED_CA_FILE} <<'END'\n${authority.pem.trim()}\nEND\n` : "";
  return `${copy}  rollcall agent ${flags.join(" ")}\n\n${remarks.join("\n")}\n`;
}

/** The file to which the printed command writes the authority's certificate. */
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

/** A word of a command line, in quotes if a shell needs them. */
function quoted(word: string): string {
  return /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
