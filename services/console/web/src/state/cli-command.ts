import { filterToSearch, type NodeFilter } from "./nodes/node-filter.ts";
import { approvalOf, orderWord, toSearch } from "./nodes/node-scope.ts";
import type { OrderBy } from "./nodes/sorted-view.ts";

/** Quote a word of a command line if a shell needs it. */
function quoted(word: string): string {
  return /^[\w./:@=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Join words to a command line, quoted as needed. */
export function command(...words: readonly (string | number)[]): string {
  return ["rollcall", ...words.map((word) => quoted(String(word)))].join(" ");
}

/** The node verbs that the pages offer. */
export type NodeVerb =
  | "approve"
  | "reject"
  | "cordon"
  | "uncordon"
  | "drain"
  | "undrain"
  | "delete"
  | "ban"
  | "unban"
  | "mark-unhealthy"
  | "clear-mark"
  | "rotate-key"
  | "accept-hardware";

/** The command that applies a verb to some nodes. */
export function nodeCommand(verb: NodeVerb, ids: readonly string[], reason = "", more: readonly string[] = []): string {
  const message = reason === "" ? [] : ["-m", reason];
  const names = ids.length > MOST_NAMES ? [...ids.slice(0, MOST_NAMES), "..."] : ids;
  return command("node", verb, ...names, ...message, ...more);
}

/** Maximum number of names in a command. A longer command is truncated, and cannot be run. */
export const MOST_NAMES = 50;

/** The command that lists the nodes of a view. A sort order that the CLI lacks is omitted. */
export function listCommand(
  filter: NodeFilter,
  order: { readonly by: OrderBy; readonly reversed: boolean },
  show: readonly string[] = [],
): string {
  const search = filterToSearch({ ...filter, approval: approvalOf(filter) });
  const by = orderWord(order.by);
  return command(
    "node",
    "list",
    ...option("--labels", search.labels),
    ...option("--filter-approval", search.approval),
    ...option("--filter-status", search.health),
    ...option("--filter-connection", search.connection),
    ...option("--filter-scheduling", search.scheduling),
    ...option("--filter-type", search.type),
    ...option("--search", toSearch(filter.q) || undefined),
    ...option("--order-by", by === "id" ? undefined : by),
    ...(by !== undefined && order.reversed ? ["--order-reversed"] : []),
    ...option("--show", show.length === 0 ? undefined : show.join(",")),
  );
}

function option(flag: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [flag, value];
}

/** The options of a new join token. */
export interface JoinTokenWish {
  readonly description: string;
  /** The number of uses: "" means one, "unlimited" any number. */
  readonly uses: string;
  readonly ttl: string;
  readonly namePattern: string;
  readonly group: string;
  readonly labels: readonly string[];
  readonly preauthorized: boolean;
  readonly ephemeral: boolean;
}

/** The command that creates a join token with these options. */
export function tokenCommand(wish: JoinTokenWish): string {
  return command(
    "token",
    "create",
    ...option("--description", wish.description || undefined),
    ...option("--uses", wish.uses || undefined),
    ...option("--ttl", wish.ttl || undefined),
    ...option("--name-pattern", wish.namePattern || undefined),
    ...option("--group", wish.group || undefined),
    ...wish.labels.flatMap((label) => ["--label", label]),
    ...(wish.preauthorized ? ["--preauthorized"] : []),
    ...(wish.ephemeral ? ["--ephemeral"] : []),
  );
}

/** The ways to run an agent on a machine. */
export const PLATFORMS = ["shell", "service", "container"] as const;
export type Platform = (typeof PLATFORMS)[number];

/**
 * The server address for machines that join: the page's origin with its scheme. Without a scheme, an agent requires a
 * port, and uses TLS only if it is given an authority. A loopback address does not work from other machines.
 */
export function joinServer({ origin, hostname }: { readonly origin: string; readonly hostname: string }) {
  const isLoopback = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
  return { server: origin, isLoopback };
}

/**
 * The commands that join a machine to `server`, as in docs/install.md. `server` is http://HOST or https://HOST with an
 * optional port.
 */
export function joinCommand(platform: Platform, server: string, token: string): string {
  const agent = `rollcall agent --server ${quoted(server)}`;
  switch (platform) {
    case "shell":
      return `ROLLCALL_JOIN_TOKEN=${quoted(token)} ${agent}`;
    case "service":
      return [
        `printf %s ${quoted(token)} | install -m 0640 -g rollcall-agent /dev/stdin /etc/rollcall/join-token`,
        // Remove both spellings of each key, dotted and within its section, because the agent refuses a key that is set
        // twice.
        "sed -E -i '/^ *(Compute\\.)?(Server|JoinTokenFile):/d' /etc/rollcall/agent.yaml",
        `printf '%s\\n' ${quoted(`Compute.Server: ${server}`)} 'Compute.JoinTokenFile: /etc/rollcall/join-token' \\`,
        "  >> /etc/rollcall/agent.yaml",
        // Restart the agent, because a running agent does not reread its configuration.
        "systemctl enable rollcall-agent && systemctl restart rollcall-agent",
      ].join("\n");
    case "container":
      return [
        "podman run --detach --network host --volume rollcall-agent:/var/lib/rollcall",
        `--env ROLLCALL_JOIN_TOKEN=${quoted(token)} rollcall agent --server ${quoted(server)}`,
      ].join(" ");
  }
}
