import { create } from "@bufbuild/protobuf";
import {
  DeleteWebhookResponseSchema,
  GetWebhookResponseSchema,
  ListWebhooksResponseSchema,
  ReplayDeliveriesResponseSchema,
  SetWebhookResponseSchema,
  TestWebhookResponseSchema,
  type Webhook,
  WebhookService,
} from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import type { Command } from "commander";
import { readActorNames } from "../client/actor-names.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addListingOptions, addNotes } from "../command.ts";
import { Failure, parseCount, UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { CHANGE_FORMATS, okLine, writeChange } from "../output/change.ts";
import { confirm, YES } from "../output/confirm.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writeAnswer } from "../output/format.ts";
import { type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { TablePrinter } from "../output/table.ts";
import { BLOCKED_COLUMNS, describeWebhook, WEBHOOK_COLUMNS } from "../webhooks/webhook-words.ts";

const NAME = ["<name>", "Name of the webhook, as `webhook list` shows it"] as const;

/** Define the verbs of `webhook`. */
export function defineWebhook(webhook: Command, shell: Invocation["shell"]): void {
  defineSet(webhook.command("set").description("Create a webhook, or change the given settings of one"), shell);
  const list = addListingOptions(
    webhook.command("list").description("List webhooks, and the state of their deliveries"),
  );
  addNotes(list, "-o json|yaml prints a rollcall.events.v1.ListWebhooksResponse; -o csv prints RFC 4180.");
  list.action(action(shell, webhookList));
  const show = webhook
    .command("show")
    .description("Show one webhook, and the event subjects whose deliveries are blocked")
    .argument(...NAME);
  addNotes(show, "-o json|yaml prints a rollcall.events.v1.GetWebhookResponse in proto JSON.");
  show.action(action(shell, webhookShow));
  const test = webhook
    .command("test")
    .description("Send one event of type io.rollcall.webhook.test")
    .argument(...NAME);
  addNotes(
    test,
    "Exits with 1 if the receiver does not accept it, and with 3 if the control plane cannot be reached. " +
      "-o json|yaml prints a TestWebhookResponse.",
  );
  test.action(action(shell, webhookTest));
  const replay = webhook
    .command("replay")
    .description("Deliver events again, starting at a revision")
    .argument(...NAME);
  replay.requiredOption("--from <revision>", "First revision to deliver again; 0 is the oldest that is kept");
  addNotes(addChangeOptions(replay), "Receivers that deduplicate by webhook-id see no event twice.");
  replay.action(action(shell, webhookReplay));
  const remove = webhook
    .command("delete")
    .description("Delete a webhook")
    .argument(...NAME);
  addChangeOptions(remove)
    .option(...YES)
    .action(action(shell, webhookDelete));
}

function defineSet(command: Command, shell: Invocation["shell"]): void {
  command
    .argument("<name>", "Name: 1-63 characters of [a-z0-9-]")
    .option("--url <url>", "URL to post events to: https://...")
    .option("--type <types>", 'Only events of these types, separated by commas; "all" for all')
    .option("--exclude-type <types>", 'No events of these types, separated by commas; "none" for none')
    .option("-l, --selector <selector>", 'Only events about nodes with these labels: zone=a,!spot; "" for all events')
    .option("--description <text>", "What the webhook is for")
    .option("--pause", "Pause deliveries")
    .option("--resume", "Resume deliveries, whether an admin or failures paused them")
    .option("--from <revision>", "First revision for a new webhook; 0 is the oldest that is kept (default: now)")
    .option("--rotate-secret", "Create a new secret; for a day, deliveries are also signed with the previous one");
  addChangeOptions(command).action(action(shell, webhookSet));
  addNotes(
    command,
    "Settings that are not given stay unchanged. Prints only a new secret to standard output, once, and all messages " +
      "to standard error: rollcall webhook set ops --url https://ops.example/hook > secret.",
    "Events are CloudEvents in JSON, signed as https://www.standardwebhooks.com describes. -o json|yaml prints a " +
      "rollcall.events.v1.SetWebhookResponse in proto JSON.",
  );
}

interface ChangeOptions {
  readonly message?: string;
  readonly requestId?: string;
}

interface SetOptions extends ChangeOptions {
  readonly url?: string;
  readonly type?: string;
  readonly excludeType?: string;
  readonly selector?: string;
  readonly description?: string;
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly from?: string;
  readonly rotateSecret?: boolean;
}

const webhookSet: Verb<SetOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const name = args[0] ?? "";
  if (options.pause === true && options.resume === true) throw new UsageError("cannot use --pause with --resume");
  const { control, client } = reach({ shell, options });
  const before = await control.attempt("admin", `read webhook ${name}`, () => findWebhook(client, name));
  const url = options.url ?? before?.spec?.url;
  if (url === undefined) throw new Failure(`there is no webhook ${name}: pass --url to create it`);
  const spec = {
    url,
    types: named(options.type, "all") ?? before?.spec?.types ?? [],
    excludeTypes: named(options.excludeType, "none") ?? before?.spec?.excludeTypes ?? [],
    labelSelector: options.selector ?? before?.spec?.labelSelector ?? "",
    description: options.description ?? before?.spec?.description ?? "",
    paused: options.pause ?? (options.resume === true ? false : (before?.spec?.paused ?? false)),
  };
  const { message: reason = "", requestId = "", rotateSecret = false } = options;
  // Send no etag with a request id, because a repeated call must get the first response, and the etag would no longer
  // match. If others have changed the webhook since, the merged specification differs, and the call is refused with
  // REQUEST_ID_REUSED.
  const etag = requestId === "" ? (before?.etag ?? "") : "";
  const request = { ...{ name, spec, rotateSecret, etag, reason, requestId }, start: startOf(options.from) };
  const answer = await control.attempt("admin", `set webhook ${name}`, () => client.setWebhook(request));
  const text = answer.secret === "" ? "" : `${answer.secret}\n`;
  await writeAnswer(shell, format, [SetWebhookResponseSchema, answer], text);
  if (format !== "table") return;
  if (text === "") shell.err.write(okLine(name, before === undefined ? "created" : "updated"));
  else shell.err.write(`Receivers verify the signatures of webhook ${name} with this secret. It is not shown again.\n`);
};

/** Parse a comma-separated list; the word `none` stands for an empty list. Undefined if the option is not given. */
function named(text: string | undefined, none: string): string[] | undefined {
  if (text === undefined) return undefined;
  if (text === none) return [];
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function startOf(from: string | undefined) {
  if (from === undefined) return { case: undefined };
  const first = parseCount("from", from, 0);
  return first === 0
    ? ({ case: "fromBeginning", value: true } as const)
    : ({ case: "afterRevision", value: BigInt(first) - 1n } as const);
}

const webhookList: Verb<ListingOptions> = async (invocation) => {
  const { control, client } = reach(invocation);
  await printListing(invocation, {
    columns: WEBHOOK_COLUMNS,
    nameOf: ({ name }: Webhook) => name,
    pages: readPages((part) => control.attempt("admin", "list webhooks", () => client.listWebhooks(part)), {
      countOf: ({ webhooks }) => webhooks.length,
    }),
    itemsOf: ({ webhooks }) => webhooks,
    whole: (pages) => {
      const answer = create(ListWebhooksResponseSchema);
      answer.webhooks = pages.flatMap(({ webhooks }) => webhooks);
      return toPlain(ListWebhooksResponseSchema, answer);
    },
  });
};

const webhookShow: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const name = args[0] ?? "";
  const { control, client } = reach({ shell, options });
  const answer = await control.attempt("admin", `show webhook ${name}`, () => client.getWebhook({ name }));
  const { webhook } = answer;
  const blocked = webhook?.status?.blocked ?? [];
  const look = { paint: choosePaint(shell, options), columns: columnsOf(shell) };
  const waiting = blocked.length === 0 ? "" : `\n${new TablePrinter(BLOCKED_COLUMNS, look).print(blocked)}`;
  const names = await readActorNames(control, format === "table" ? [webhook?.updater ?? ""] : []);
  const text = webhook === undefined ? "" : describeWebhook(webhook, names) + waiting;
  await writeAnswer(shell, format, [GetWebhookResponseSchema, answer], text);
};

const webhookTest: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const name = args[0] ?? "";
  const { control, client } = reach({ shell, options });
  const answer = await control.attempt("admin", `test webhook ${name}`, () => client.testWebhook({ name }));
  const { delivered, failure, statusCode } = answer;
  const text = delivered ? `Ok: the receiver answered ${statusCode}\n` : "";
  await writeAnswer(shell, format, [TestWebhookResponseSchema, answer], text);
  if (!delivered) throw new Failure(`the test event was not delivered: ${failure}`);
};

interface ReplayOptions extends ChangeOptions {
  readonly from: string;
}

const webhookReplay: Verb<ReplayOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const name = args[0] ?? "";
  const fromRevision = BigInt(parseCount("from", options.from, 0));
  const { message: reason = "", requestId = "" } = options;
  const { control, client } = reach({ shell, options });
  const answer = await control.attempt("admin", `replay webhook ${name}`, () =>
    client.replayDeliveries({ name, fromRevision, reason, requestId }),
  );
  const text = `Delivering revisions ${answer.fromRevision} to ${answer.throughRevision} again\n`;
  await writeAnswer(shell, format, [ReplayDeliveriesResponseSchema, answer], text);
};

const webhookDelete: Verb<ChangeOptions & { readonly yes?: boolean }> = async ({ shell, args, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const name = args[0] ?? "";
  const { message: reason = "", requestId = "" } = options;
  await confirm(shell, options, `delete webhook ${name}`);
  const { control, client } = reach({ shell, options });
  const answer = await control.attempt("admin", `delete webhook ${name}`, () =>
    client.deleteWebhook({ name, reason, requestId }),
  );
  await writeChange(shell, format, [DeleteWebhookResponseSchema, answer], { object: name, result: "deleted" });
};

function reach({ shell, options }: Pick<Invocation, "shell" | "options">) {
  const control = reachControlPlane(shell, options);
  return { control, client: control.client("admin", WebhookService) };
}

/** Find a webhook by its name; null when there is none. */
async function findWebhook(client: ReturnType<typeof reach>["client"], name: string): Promise<Webhook | null> {
  let pageToken = "";
  do {
    const page = await client.listWebhooks({ pageToken });
    const found = page.webhooks.find((webhook) => webhook.name === name);
    if (found !== undefined) return found;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return null;
}
