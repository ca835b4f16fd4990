import { displayAddress, isLoopback } from "../client/addresses.ts";
import type { AuthorityToShow } from "../client/authority-to-show.ts";
import type { Trust } from "../client/client-tls.ts";
import type { JoinScript } from "../client/find-join-script.ts";

/** The parts of the command that joins a machine. */
export interface JoinCommand {
  /** Base URL of the registry. */
  readonly registry: string;
  readonly trust: Trust;
  readonly authority: AuthorityToShow;
  /** The script that the registry serves; null if it serves none. */
  readonly script: JoinScript | null;
  /** The token's text, or a placeholder. */
  readonly token: string;
}

/** Format the command that joins a machine, with remarks about it. */
export function joinCommand(command: JoinCommand): string {
  const { registry, authority, script } = command;
  const remarks = [
    ...(authority.kind === "file" ? [`Other machines need a copy of ${authority.path}.`] : []),
    ...(isLoopback(registry)
      ? ["On other machines, replace the address in --server with one that reaches this machine."]
      : []),
  ];
  const copy = authority.kind === "text" ? `cat > ${COPIED_CA_FILE} <<'END'\n${authority.pem.trim()}\nEND\n` : "";
  const [line, remark] = script === null ? agentLine(command) : scriptLine(command, script);
  return `${copy}  ${line}\n\n${[...remarks, remark].join("\n")}\n`;
}

/** The line that downloads the script, checks who sent it, and runs it. Nothing runs if the download fails. */
function scriptLine({ registry, authority, token }: JoinCommand, { pin }: JoinScript): readonly [string, string] {
  const url = new URL(registry).origin;
  const isPinned = authority.kind === "fingerprint" && pin !== null;
  const verified = isPinned ? [`-k --pinnedpubkey ${quoted(pin)}`] : authorityFlags(authority, "--cacert");
  const download = ["curl -fsS", ...verified, quoted(`${url}/join.sh`)].join(" ");
  const pinned = isPinned ? [`--pin ${quoted(pin)}`] : [];
  const options = [`--server ${quoted(url)}`, ...pinned, ...authorityFlags(authority)].join(" ");
  return [
    `s=$(${download}) && ROLLCALL_JOIN_TOKEN=${token} sh -c "$s" join.sh ${options}`,
    "Run it as root: it installs the agent as a service. To keep the token out of the shell's history, write it to a " +
      "file, and set ROLLCALL_JOIN_TOKEN_FILE to that file instead of ROLLCALL_JOIN_TOKEN.",
  ];
}

/** The line for a machine where rollcall is installed. */
function agentLine({ registry, trust: { serverName }, authority, token }: JoinCommand): readonly [string, string] {
  const flags = [
    `--server ${displayAddress(registry)}`,
    ...authorityFlags(authority),
    ...(serverName === null ? [] : [`--tls-server-name ${quoted(serverName)}`]),
    `--join-token ${token}`,
  ];
  return [
    `rollcall agent ${flags.join(" ")}`,
    "Use --join-token-file or ROLLCALL_JOIN_TOKEN_FILE to hide the token from the list of processes.",
  ];
}

/** The file to which the printed command writes the authority's certificate. */
const COPIED_CA_FILE = "rollcall-ca.pem";

function authorityFlags(authority: AuthorityToShow, fileFlag = "--ca-file"): readonly string[] {
  switch (authority.kind) {
    case "system":
      return [];
    case "fingerprint":
      return [`--ca-fingerprint ${authority.fingerprint}`];
    case "text":
      return [`${fileFlag} ${COPIED_CA_FILE}`];
    case "file":
      return [`${fileFlag} ${quoted(authority.path)}`];
  }
}

/** A word of a command line, in quotes if a shell needs them. */
function quoted(word: string): string {
  return /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
