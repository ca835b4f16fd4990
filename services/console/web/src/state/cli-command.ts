import { filterToSearch, type NodeFilter } from "./nodes/node-filter.ts";
import { orderWord, toSearch } from "./nodes/node-scope.ts";
import type { OrderBy } from "./nodes/sorted-view.ts";

/** A word of a command line, in quotes where a shell needs them. */
function quoted(word: string): string {
  return /^[\w./:@=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command from words, each quoted as needed. */
export function command(...words: readonly (string | number)[]): string {
  return ["rollcall", ...words.map((word) => quoted(String(word)))].join(" ");
}

/** The verbs of nodes that the pages offer. */
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

/** The command of a verb about named nodes. */
export function nodeCommand(verb: NodeVerb, ids: readonly string[], reason = "", more: readonly string[] = []): string {
  const message = reason === "" ? [] : ["-m", reason];
  const names = ids.length > MOST_NAMES ? [...ids.slice(0, MOST_NAMES), "..."] : ids;
  return command("node", verb, ...names, ...message, ...more);
}

/** Names that a command has at most; beyond that it is cut short, and cannot be run. */
export const MOST_NAMES = 50;

/** The command that lists what a view of nodes shows. An order that the command line has not is left out. */
export function listCommand(
  filter: NodeFilter,
  order: { readonly by: OrderBy; readonly reversed: boolean },
  show: readonly string[] = [],
): string {
  const search = filterToSearch(filter);
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

/** What is asked for when a join token is made. */
export interface JoinTokenWish {
  readonly description: string;
  /** "" is one use, "unlimited" any number. */
  readonly uses: string;
  readonly ttl: string;
  readonly namePattern: string;
  readonly group: string;
  readonly labels: readonly string[];
  readonly preauthorized: boolean;
  readonly ephemeral: boolean;
}

/** The command that makes such a token. */
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

/** The ways in which a machine can be made to join. */
export const PLATFORMS = ["shell", "service", "container"] as const;
/** One of them. */
export type Platform = (typeof PLATFORMS)[number];

/**
 * The server that machines are told to join: where the page is from, with its scheme, since without one an agent asks
 * for a port, and speaks TLS only where it is given an authority. A loopback address leads nowhere from other machines.
 */
export function joinServer({ origin, hostname }: { readonly origin: string; readonly hostname: string }) {
  const isLoopback = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
  return { server: origin, isLoopback };
}

/**
 * What to run on a machine so that it joins `server`, http://HOST or https://HOST with or without a port, as
 * docs/install.md has it for each way.
 */
export function joinCommand(platform: Platform, server: string, token: string): string {
  const agent = `rollcall agent --server ${quoted(server)}`;
  switch (platform) {
    case "shell":
      return `ROLLCALL_JOIN_TOKEN=${quoted(token)} ${agent}`;
    case "service":
      return [
        `printf %s ${quoted(token)} | install -m 0640 -g rollcall-agent /dev/stdin /etc/rollcall/join-token`,
        // A key set twice is refused, whether dotted or in its section.
        "sed -E -i '/^ *(Compute\\.)?(Server|JoinTokenFile):/d' /etc/rollcall/agent.yaml",
        `printf '%s\\n' ${quoted(`Compute.Server: ${server}`)} 'Compute.JoinTokenFile: /etc/rollcall/join-token' \\`,
        "  >> /etc/rollcall/agent.yaml",
        // One that runs already reads its configuration again only so.
        "systemctl enable rollcall-agent && systemctl restart rollcall-agent",
      ].join("\n");
    case "container":
      return [
        "podman run --detach --network host --volume rollcall-agent:/var/lib/rollcall",
        `--env ROLLCALL_JOIN_TOKEN=${quoted(token)} rollcall agent --server ${quoted(server)}`,
      ].join(" ");
  }
}
