import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import {
  AccessService,
  type AccessToken,
  AccessTokenKind,
  AccessTokenState,
  AccessTokenStateSchema,
  type CreateAccessTokenResponse,
  CreateAccessTokenResponseSchema,
  ListAccessTokensResponseSchema,
  RevokeAccessTokenResponseSchema,
  Role,
  RoleSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { stateWords } from "@rollcall/domain";
import type { Command } from "commander";
import { ROLE_WORDS } from "../choices.ts";
import { PagedActorNames } from "../client/actor-names.ts";
import { alreadyDone } from "../client/already-done.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addListingOptions, addNotes, REQUEST_ID, STRICT } from "../command.ts";
import { parseDurationMs, pickWord } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { CHANGE_FORMATS, okLine } from "../output/change.ts";
import { confirm, YES } from "../output/confirm.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writeAnswer, writePlain } from "../output/format.ts";
import { isWide, type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { type Column, timeCell } from "../output/table.ts";
import { printable } from "../output/text.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";

/** Define the verbs of `access`. */
export function defineAccess(access: Command, shell: Shell): void {
  const make = access
    .command("create")
    .description("Create an access token, and print it once")
    .argument("<name>", "What the token is for: ci, alice's laptop")
    .requiredOption("--role <role>", "viewer, operator, submitter or admin")
    .option("--ttl <duration>", "How long it is valid, such as 8h or 30d (default: until revoked)")
    .option(...REQUEST_ID)
    .action(action(shell, accessCreate));
  addNotes(
    make,
    "Prints only the token to standard output, and details to standard error: rollcall access create ci " +
      "--role viewer > token.",
    "-o json|yaml prints a rollcall.admin.v1.CreateAccessTokenResponse in proto JSON.",
  );
  const list = access
    .command("list")
    .description("List access tokens and console sessions, oldest first")
    .option("--all", "Include expired and revoked")
    .action(action(shell, accessList));
  addNotes(
    addListingOptions(list),
    "-o json|yaml prints a rollcall.admin.v1.ListAccessTokensResponse in proto JSON; -o csv prints RFC 4180.",
  );
  const revoke = access
    .command("revoke")
    .description("Revoke an access token or a console session; it stops working within a second")
    .argument("<access-id>", "Id of the access token or session, as `access list` shows it")
    .action(action(shell, accessRevoke));
  addNotes(
    addChangeOptions(revoke)
      .option(...STRICT)
      .option(...YES),
    "Any token can revoke itself; revoking another token requires the role admin. A console session ends with the " +
      "token that it acts for.",
    "-o json|yaml prints a rollcall.admin.v1.RevokeAccessTokenResponse in proto JSON.",
  );
}

interface AccessCreateOptions {
  readonly role: string;
  readonly ttl?: string;
  readonly requestId?: string;
}

const ROLES: Readonly<Record<(typeof ROLE_WORDS)[number], Role>> = {
  viewer: Role.VIEWER,
  operator: Role.OPERATOR,
  submitter: Role.SUBMITTER,
  admin: Role.ADMIN,
};

const accessCreate: Verb<AccessCreateOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const { ttl, requestId = "" } = options;
  const request = {
    name: args[0] ?? "",
    role: ROLES[pickWord("role", options.role, ROLE_WORDS)],
    requestId,
    ...(ttl === undefined ? {} : { ttl: durationFromMs(parseDurationMs("ttl", ttl)) }),
  };
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  const answer = await control.attempt("admin", "create an access token", () => client.createAccessToken(request));
  const text = answer.text === "" ? "" : `${answer.text}\n`;
  await writeAnswer(shell, format, [CreateAccessTokenResponseSchema, answer], text);
  if (format === "table") shell.err.write(hint(answer));
};

function hint({ accessToken: token, text }: CreateAccessTokenResponse): string {
  const id = token?.id ?? "";
  if (text === "") {
    return (
      `An earlier call with this request id created access token ${id}. Its text cannot be shown again: use ` +
      `\`rollcall access revoke ${id}\` and create another.\n`
    );
  }
  const until = token?.expireTime === undefined ? "it is revoked" : formatTime(timestampMs(token.expireTime));
  const role = roleWord(token?.role ?? 0);
  return (
    `Access token ${id} (${printable(token?.name ?? "")}) has the role ${role} and is valid until ${until}. It ` +
    "is not shown again.\n"
  );
}

interface AccessListOptions extends ListingOptions {
  readonly all?: boolean;
}

const accessList: Verb<AccessListOptions> = async (invocation) => {
  const { all: showEnded = false } = invocation.options;
  const control = reachControlPlane(invocation.shell, invocation.options);
  const client = control.client("admin", AccessService);
  const names = new PagedActorNames(control);
  await printListing(invocation, {
    columns: columnsWith(names, isWide(invocation.options)),
    nameOf: ({ id }: AccessToken) => id,
    pages: readPages(
      (part) => control.attempt("admin", "list access tokens", () => client.listAccessTokens({ ...part, showEnded })),
      { countOf: ({ accessTokens }) => accessTokens.length },
    ),
    itemsOf: async ({ accessTokens }) => {
      await names.learn(accessTokens.map(({ creator }) => creator));
      return accessTokens;
    },
    whole: (pages) => {
      const answer = create(ListAccessTokensResponseSchema);
      answer.accessTokens = pages.flatMap(({ accessTokens }) => accessTokens);
      return toPlain(ListAccessTokensResponseSchema, answer);
    },
  });
};

/** The words for each kind of token. An older control plane does not send the kind. */
const KIND_WORDS: ReadonlyMap<AccessTokenKind, string> = new Map([
  [AccessTokenKind.TOKEN, "token"],
  [AccessTokenKind.CONSOLE_SESSION, "session"],
]);

const columnsWith = (names: PagedActorNames, wide: boolean): readonly Column<AccessToken>[] => [
  { title: "ID", name: "id", cell: ({ id }) => ({ text: id }) },
  { title: "NAME", name: "name", limit: 32, cell: ({ name }) => ({ text: name }) },
  { title: "ROLE", name: "role", cell: ({ role }) => ({ text: roleWord(role) }) },
  {
    title: "STATE",
    name: "state",
    rank: 1,
    cell: ({ state }) => {
      const name = AccessTokenStateSchema.value[state]?.localName ?? String(state);
      return { text: stateWords(name), raw: name, style: state === AccessTokenState.VALID ? "good" : "plain" };
    },
  },
  { title: "EXPIRES", name: "expires", rank: 2, cell: ({ expireTime }) => timeCell(expireTime, "never") },
  { title: "LAST USE", name: "last_use", rank: 3, cell: ({ lastUseTime }) => timeCell(lastUseTime) },
  { title: "CREATED", name: "created", rank: 5, cell: ({ createTime }) => timeCell(createTime) },
  { title: "BY", name: "creator", limit: 32, rank: 4, cell: ({ creator }) => names.cell(creator, wide) },
  { title: "KIND", name: "kind", rank: 6, cell: ({ kind }) => ({ text: KIND_WORDS.get(kind) ?? "token" }) },
];

interface AccessRevokeOptions {
  readonly yes?: boolean;
  readonly message?: string;
  readonly requestId?: string;
  readonly strict?: boolean;
}

const NO_ADMIN_LEFT =
  "warning: no access token with the role admin is left\nhint: someone to whom an issuer grants that role can log " +
  "in and " +
  "create one; otherwise restart admin with a new Admin.Token or Admin.TokenFile, or `rollcall up` without the " +
  "admin-token file in its data directory\n";

const LAST_ADMIN = "warning: this is the last access token with the role admin\n";

/** Whether a token is the only valid one with the role admin. False if the tokens cannot be read. */
async function isLastAdmin(client: Client<typeof AccessService>, id: string): Promise<boolean> {
  try {
    const { accessTokens } = await client.listAccessTokens({ pageSize: MOST_CHECKED });
    const admins = accessTokens.filter(
      ({ role, kind }) => role === Role.ADMIN && kind !== AccessTokenKind.CONSOLE_SESSION,
    );
    return admins.length === 1 && admins[0]?.id === id;
  } catch {
    // Ask without the warning. The revocation reports why the call failed.
    return false;
  }
}

const MOST_CHECKED = 500;

const accessRevoke: Verb<AccessRevokeOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const id = accessTokenIdOf(args[0] ?? "");
  const object = `access token ${id}`;
  const { message: reason = "", requestId = "", strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  if (shell.ask !== null && options.yes !== true && (await isLastAdmin(client, id))) shell.err.write(LAST_ADMIN);
  await confirm(shell, options, `revoke ${object}`);
  const answer = await control.attempt("admin", `revoke ${object}`, () =>
    alreadyDone(shell, { strict, format, words: { object, result: "was already revoked" } }, () =>
      client.revokeAccessToken({ id, reason, requestId }),
    ),
  );
  if (answer?.adminTokensLeft === 0) shell.err.write(NO_ADMIN_LEFT);
  if (format === "name") shell.out.write(`${printable(id)}\n`);
  else if (format !== "table") {
    // Print an empty response, because the earlier call that revoked the token returned the response.
    await writePlain(shell, format, answer === null ? {} : toPlain(RevokeAccessTokenResponseSchema, answer));
  } else if (answer !== null) shell.out.write(okLine(object, "revoked"));
};

const TEXT = /^rc_([0-9a-f]{12})_/;

/** The id of a token, given by its id or by its text. The text is not sent. */
function accessTokenIdOf(word: string): string {
  return TEXT.exec(word)?.[1] ?? word;
}

/** "viewer", "operator", "submitter" or "admin"; for a role that only a newer server knows, its number. */
export function roleWord(role: Role): string {
  return RoleSchema.value[role]?.localName.toLowerCase() ?? String(role);
}
