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
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addListingOptions, addNotes, type Invocation, type Verb } from "../command.ts";
import { Failure, parseCount, UsageError } from "../failure.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writeAnswer } from "../output/format.ts";
import { type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { TablePrinter } from "../output/table.ts";
import { BLOCKED_COLUMNS, describeWebhook, WEBHOOK_COLUMNS } from "../webhooks/webhook-words.ts";

const NAME = ["<name>", "Name of the webhook, as `webhook list` shows it"] as const;

/** Define the verbs of `webhook`. */
export function defineWebhook(webhook: Command, shell: Invocation["shell"]): void {
  defineSet(webhook.command("set").description("Create a webhook, or change what is named of one"), shell);
  const list = addListingOptions(webhook.command("list").description("List webhooks, and how their deliveries stand"));
  addNotes(list, "-o json|yaml prints a rollcall.events.v1.ListWebhooksResponse; -o csv prints RFC 4180.");
  list.action(action(shell, webhookList));
  const show = webhook
    .command("show")
    .description("Show one webhook, and which subjects wait")
    .argument(...NAME);
  addNotes(show, "-o json|yaml prints a rollcall.events.v1.GetWebhookResponse in proto JSON.");
  show.action(action(shell, webhookShow));
  const test = webhook
    .command("test")
    .description("Send one event of type io.rollcall.webhook.test")
    .argument(...NAME);
  addNotes(test, "Exits with 1 when the receiver does not take it. -o json|yaml prints a TestWebhookResponse.");
  test.action(action(shell, webhookTest));
  const replay = webhook
    .command("replay")
    .description("Deliver events again, from a revision on")
    .argument(...NAME);
  replay.requiredOption("--from <revision>", "First revision to deliver again; 0 is the oldest that is kept");
  addNotes(addChangeOptions(replay), "Receivers that deduplicate by webhook-id see no event twice.");
  replay.action(action(shell, webhookReplay));
  const remove = webhook
    .command("delete")
    .description("Delete a webhook")
    .argument(...NAME);
  addChangeOptions(remove).action(action(shell, webhookDelete));
}

function defineSet(command: Command, shell: Invocation["shell"]): void {
  command
    .argument("<name>", "Name: 1-63 characters of [a-z0-9-]")
    .option("--url <url>", "Where events are posted to: https://...")
    .option("--type <types>", 'Only events of these types; several with commas; "all" for all')
    .option("--exclude-type <types>", 'Not events of these types; several with commas; "none" for none')
    .option("-l, --selector <selector>", 'Only events about nodes with such labels: zone=a,!spot; "" for all events')
    .option("--description <text>", "What it is for")
    .option("--pause", "Hold deliveries")
    .option("--resume", "Let deliveries go on, whatever has paused them")
    .option("--from <revision>", "Of a new one: begin with this revision; 0 is the oldest that is kept (default: now)")
    .option("--rotate-secret", "Make another secret; the one before signs too for a day");
  addChangeOptions(command).action(action(shell, webhookSet));
  addNotes(
    command,
    "What is not named stays as it is. A new secret alone goes to standard output, once, and what there is to say " +
      "to standard error: rollcall webhook set ops --url https://ops.example/hook > secret.",
    "Events are CloudEvents in JSON, signed as https://www.standardwebhooks.com says. -o json|yaml prints a " +
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
  if (url === undefined) throw new Failure(`there is no webhook ${name}: give its --url to create it`);
  const spec = {
    url,
    types: named(options.type, "all") ?? before?.spec?.types ?? [],
    excludeTypes: named(options.excludeType, "none") ?? before?.spec?.excludeTypes ?? [],
    labelSelector: options.selector ?? before?.spec?.labelSelector ?? "",
    description: options.description ?? before?.spec?.description ?? "",
    paused: options.pause ?? (options.resume === true ? false : (before?.spec?.paused ?? false)),
  };
  const { message: reason = "", requestId = "", rotateSecret = false } = options;
  // A repetition with a request id must get its first answer, whatever has changed since.
  const etag = requestId === "" ? (before?.etag ?? "") : "";
  const request = { ...{ name, spec, rotateSecret, etag, reason, requestId }, start: startOf(options.from) };
  const answer = await control.attempt("admin", `set webhook ${name}`, () => client.setWebhook(request));
  const text = answer.secret === "" ? "" : `${answer.secret}\n`;
  await writeAnswer(shell, format, [SetWebhookResponseSchema, answer], text);
  if (format !== "table") return;
  if (text === "") shell.err.write("Ok\n");
  else shell.err.write(`This secret checks the signatures of webhook ${name}. It is not shown again.\n`);
};

/** A list with commas; the word for an empty one is that; undefined where nothing is named. */
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
  const text = webhook === undefined ? "" : describeWebhook(webhook) + waiting;
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
  const text = `Revisions ${answer.fromRevision} to ${answer.throughRevision} are delivered again\n`;
  await writeAnswer(shell, format, [ReplayDeliveriesResponseSchema, answer], text);
};

const webhookDelete: Verb<ChangeOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const name = args[0] ?? "";
  const { message: reason = "", requestId = "" } = options;
  const { control, client } = reach({ shell, options });
  const answer = await control.attempt("admin", `delete webhook ${name}`, () =>
    client.deleteWebhook({ name, reason, requestId }),
  );
  await writeAnswer(shell, format, [DeleteWebhookResponseSchema, answer], "Ok\n");
};

function reach({ shell, options }: Pick<Invocation, "shell" | "options">) {
  const control = reachControlPlane(shell, options);
  return { control, client: control.client("admin", WebhookService) };
}

/** A webhook by its name, null where there is none. */
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
