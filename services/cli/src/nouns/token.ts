import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type CreateJoinTokenResponse,
  CreateJoinTokenResponseSchema,
  GetJoinTokenResponseSchema,
  type JoinToken,
  JoinTokenSchema,
  JoinTokenService,
  JoinTokenState,
  JoinTokenStateSchema,
  type JoinTokenUse,
  ListJoinTokensResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { stateWords } from "@rollcall/domain";
import type { Command } from "commander";
import { type ActorNames, readActorNames } from "../client/actor-names.ts";
import { alreadyDone } from "../client/already-done.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addListingOptions, addNotes, REQUEST_ID, STRICT } from "../command.ts";
import { parseCount, parseDurationMs, UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { CHANGE_FORMATS, okLine } from "../output/change.ts";
import { confirm, YES } from "../output/confirm.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writeAnswer, writePlain } from "../output/format.ts";
import { type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { choosePaint, columnsOf, wrapped } from "../output/style.ts";
import { type Column, optionalCell, stateCell, TablePrinter, timeCell } from "../output/table.ts";
import { fieldLines, printable } from "../output/text.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { type JoinCommand, joinCommand } from "./join-command.ts";

const TOKEN = ["<token-id>", "Id of the join token, as `token list` shows it"] as const;

/** Define the verbs of `token`. */
export function defineToken(token: Command, shell: Shell): void {
  defineCreate(token.command("create").description("Create a join token, and print it once"), shell);
  const list = addListingOptions(token.command("list").description("List join tokens, newest first"));
  addNotes(
    list,
    "-o json|yaml prints a rollcall.admin.v1.ListJoinTokensResponse in proto JSON; -o csv prints RFC 4180.",
  );
  list.action(action(shell, tokenList));
  const show = token.command("show").description("Show one join token, and the machines that used it last");
  addNotes(show.argument(...TOKEN), "-o json|yaml prints a rollcall.admin.v1.GetJoinTokenResponse in proto JSON.");
  show.action(action(shell, tokenShow));
  const revoke = token.command("revoke").description("Revoke a join token; nodes that joined with it stay");
  addChangeOptions(revoke.argument(...TOKEN))
    .option(...STRICT)
    .option(...YES);
  addNotes(revoke, "-o json|yaml prints the revoked rollcall.admin.v1.JoinToken in proto JSON.");
  revoke.action(action(shell, tokenRevoke));
}

function defineCreate(command: Command, shell: Shell): void {
  command
    .option("--description <text>", "What the token is for")
    .option("--uses <count>", 'How many machines can join with it, or "unlimited" (default: 1)')
    .option(
      "--ttl <duration>",
      'How long it is valid, such as 1h or 7d, or "never" to let it never expire (default: 24h)',
    )
    .option(
      "--name-pattern <pattern>",
      'Only nodes whose name matches: "*" stands for any characters, "?" for one; quote it: \'gpu-*\'',
    )
    .option(
      "--label <key=value>",
      "Label for nodes that join with it, which overrides the node's own; repeatable",
      (value: string, earlier: readonly string[]) => [...earlier, value],
      [],
    )
    .option("--group <name>", "Group for nodes that join with it: the label rollcall.io/group")
    .option("--preauthorized", "Immediately approve nodes that join with it, even under manual approval")
    .option("--ephemeral", "Remove nodes that joined with it when they leave")
    .option(...REQUEST_ID)
    .action(action(shell, tokenCreate));
  addNotes(
    command,
    "Prints only the token to standard output, and how to use it to standard error: TOKEN=$(rollcall token create).",
    '-o json|yaml prints a rollcall.admin.v1.CreateJoinTokenResponse in proto JSON: {"token": {...}, "text": ' +
      '"rcj_..."}.',
  );
}

interface TokenCreateOptions {
  readonly description?: string;
  readonly uses?: string;
  readonly ttl?: string;
  readonly namePattern?: string;
  readonly label: readonly string[];
  readonly group?: string;
  readonly preauthorized?: boolean;
  readonly ephemeral?: boolean;
  readonly requestId?: string;
}

const tokenCreate: Verb<TokenCreateOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const request = {
    description: options.description ?? "",
    useLimit: parseUses(options.uses),
    lifetime: parseTtl(options.ttl),
    nodeNamePattern: options.namePattern ?? "",
    labels: parseLabels(options.label),
    group: options.group ?? "",
    preauthorized: options.preauthorized ?? false,
    ephemeral: options.ephemeral ?? false,
    requestId: options.requestId ?? "",
  };
  const control = reachControlPlane(shell, options);
  const tokens = control.client("admin", JoinTokenService);
  const answer = await control.attempt("admin", "create a join token", () => tokens.createJoinToken(request));
  const text = answer.text === "" ? "" : `${answer.text}\n`;
  await writeAnswer(shell, format, [CreateJoinTokenResponseSchema, answer], text);
  if (format !== "table") return;
  // Do not show the token without a terminal, because standard error often goes to a log.
  const shown = shell.out.isTerminal ? answer.text : "TOKEN";
  const trust = control.trust("registry");
  const registry = control.elsewhere("registry");
  const reached = control.addresses.registry;
  const { authorityToShow } = await import("../client/authority-to-show.ts");
  const { findJoinScript } = await import("../client/find-join-script.ts");
  const authority = await authorityToShow({ reached, registry, trust });
  const script = await findJoinScript(reached, trust);
  shell.err.write(wrapped(hint(answer, { registry, trust, authority, script, token: shown }), shell));
};

function hint({ text, token }: CreateJoinTokenResponse, command: JoinCommand): string {
  const id = token?.id ?? "";
  if (text === "") {
    return (
      `An earlier call with this request id created join token ${id}. Its text cannot be shown again: use ` +
      `\`rollcall token revoke ${id}\` and create another.\n`
    );
  }
  const limit = token?.maxUses ?? 0;
  const machines = limit === 0 ? "any number of machines" : limit === 1 ? "one machine" : `${limit} machines`;
  const until = token?.expireTime === undefined ? "until it is revoked" : `until ${timeText(token.expireTime)}`;
  return (
    `\nJoin token ${id} is valid for ${machines} ${until}. It is not shown again. On ` +
    `${limit === 1 ? "the" : "each"} machine:\n\n${joinCommand(command)}`
  );
}

function parseUses(text: string | undefined) {
  if (text === undefined) return { case: undefined };
  if (text.toLowerCase() === "unlimited") return { case: "unlimitedUses", value: true } as const;
  return { case: "maxUses", value: parseCount("uses", text, 1) } as const;
}

function parseTtl(text: string | undefined) {
  if (text === undefined) return { case: undefined };
  if (text.toLowerCase() === "never") return { case: "neverExpires", value: true } as const;
  return { case: "ttl", value: durationFromMs(parseDurationMs("ttl", text)) } as const;
}

function parseLabels(pairs: readonly string[]): Record<string, string> {
  const labels = pairs.map((pair): [string, string] => {
    const at = pair.indexOf("=");
    if (at > 0) return [pair.slice(0, at), pair.slice(at + 1)];
    throw new UsageError(`cannot use '${pair}' as label value, should be KEY=VALUE`);
  });
  return Object.fromEntries(labels);
}

const tokenList: Verb<ListingOptions> = async (invocation) => {
  const control = reachControlPlane(invocation.shell, invocation.options);
  const client = control.client("admin", JoinTokenService);
  await printListing(invocation, {
    columns: COLUMNS,
    nameOf: ({ id }: JoinToken) => id,
    pages: readPages((part) => control.attempt("admin", "list join tokens", () => client.listJoinTokens(part)), {
      countOf: ({ tokens }) => tokens.length,
    }),
    itemsOf: ({ tokens }) => tokens,
    whole: (pages) => {
      const answer = create(ListJoinTokensResponseSchema);
      answer.tokens = pages.flatMap(({ tokens }) => tokens);
      return toPlain(ListJoinTokensResponseSchema, answer);
    },
  });
};

const COLUMNS: readonly Column<JoinToken>[] = [
  { title: "ID", name: "id", cell: ({ id }) => ({ text: id }) },
  {
    title: "STATE",
    name: "state",
    cell: ({ state }) => ({
      ...stateCell(stateName(state)),
      style: state === JoinTokenState.ACTIVE ? "good" : "plain",
    }),
  },
  { title: "USES", name: "uses", rank: 2, cell: (token) => ({ text: usesText(token) }) },
  { title: "EXPIRES", name: "expires", rank: 1, cell: ({ expireTime }) => timeCell(expireTime, "never") },
  { title: "LAST USE", name: "last_use", rank: 6, cell: ({ lastUseTime }) => timeCell(lastUseTime) },
  {
    title: "NAMES",
    name: "names",
    limit: 24,
    rank: 5,
    cell: ({ nodeNamePattern }) => optionalCell(nodeNamePattern),
  },
  { title: "GRANTS", name: "grants", limit: 40, rank: 3, cell: (token) => optionalCell(grantsText(token)) },
  {
    title: "DESCRIPTION",
    name: "description",
    limit: 40,
    rank: 4,
    cell: ({ description }) => optionalCell(description),
  },
];

const tokenShow: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const id = tokenIdOf(args[0] ?? "");
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", JoinTokenService);
  const answer = await control.attempt("admin", `show join token ${id}`, () => client.getJoinToken({ id }));
  const { token, lastUses } = answer;
  const look = { paint: choosePaint(shell, options), columns: columnsOf(shell) };
  const uses = lastUses.length === 0 ? "" : `\n${new TablePrinter(USE_COLUMNS, look).print(lastUses)}`;
  const actors = [token?.creator ?? "", token?.revocation?.actor ?? ""];
  const names = await readActorNames(control, format === "table" ? actors : []);
  const text = token === undefined ? "" : formatToken(token, names) + uses;
  await writeAnswer(shell, format, [GetJoinTokenResponseSchema, answer], text);
};

function formatToken(token: JoinToken, names: ActorNames): string {
  const { revocation } = token;
  return fieldLines([
    ["ID", token.id],
    ["Description", token.description],
    ["State", stateWords(stateName(token.state))],
    ["Uses", usesText(token)],
    ["Last use", timeText(token.lastUseTime)],
    ["Expires", timeText(token.expireTime, "never")],
    ["Names", token.nodeNamePattern || "any"],
    ["Grants", grantsText(token)],
    ["Created", `${timeText(token.createTime)} by ${names(token.creator)}`],
    ...(revocation === undefined
      ? []
      : ([
          ["Revoked", `${timeText(revocation.time)} by ${names(revocation.actor)}`],
          ["Reason", revocation.reason],
        ] as const)),
  ]);
}

const USE_COLUMNS: readonly Column<JoinTokenUse>[] = [
  { title: "NODE", name: "node", cell: ({ nodeId }) => ({ text: nodeId }) },
  { title: "JOINED", name: "joined", cell: ({ time }) => timeCell(time) },
  { title: "KEY", name: "key", rank: 1, cell: ({ keyFingerprint }) => ({ text: keyFingerprint }) },
];

interface TokenRevokeOptions {
  readonly yes?: boolean;
  readonly message?: string;
  readonly requestId?: string;
  readonly strict?: boolean;
}

const tokenRevoke: Verb<TokenRevokeOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const id = tokenIdOf(args[0] ?? "");
  const { message: reason = "", requestId = "", strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", JoinTokenService);
  const object = `join token ${id}`;
  await confirm(shell, options, `revoke ${object}`);
  const answer = await control.attempt("admin", `revoke ${object}`, () =>
    alreadyDone(shell, { strict, format, words: { object, result: "was already revoked" } }, () =>
      client.revokeJoinToken({ id, reason, requestId }),
    ),
  );
  if (format === "name") shell.out.write(`${printable(id)}\n`);
  else if (format !== "table") {
    const { token } = answer ?? (await control.attempt("admin", `read ${object}`, () => client.getJoinToken({ id })));
    await writePlain(shell, format, token === undefined ? {} : toPlain(JoinTokenSchema, token));
  } else if (answer !== null) shell.out.write(okLine(object, "revoked"));
};

const TEXT = /^rcj_[0-9a-f]+_([0-9a-f]{12})_/;

/** The id of a token, given by its id or by its text. The text is not sent. */
function tokenIdOf(word: string): string {
  return TEXT.exec(word)?.[1] ?? word;
}

/** "ACTIVE", "EXPIRED", "REVOKED" or "USED_UP". */
function stateName(state: JoinTokenState): string {
  return JoinTokenStateSchema.value[state]?.localName ?? String(state);
}

/** For example "1 of 3" or "1, unlimited". */
function usesText({ uses, maxUses }: JoinToken): string {
  return maxUses === 0 ? `${uses}, unlimited` : `${uses} of ${maxUses}`;
}

function timeText(time: JoinToken["expireTime"], none = "-"): string {
  return time === undefined ? none : formatTime(timestampMs(time));
}

/** What a token grants to nodes that join with it, for example "preauthorized, zone=a"; empty for nothing. */
function grantsText({ preauthorized, ephemeral, labels }: JoinToken): string {
  return [
    ...(preauthorized ? ["preauthorized"] : []),
    ...(ephemeral ? ["ephemeral"] : []),
    ...Object.entries(labels)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, value]) => `${key}=${value}`),
  ].join(", ");
}
