import { create, toJsonString } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import {
  type Event,
  EventSchema,
  EventService,
  type ListEventsResponse,
  ListEventsResponseSchema,
  RepublishEventsResponseSchema,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { apiNames, describeChange, type EventType, stateWords } from "@rollcall/domain";
import type { Command } from "commander";
import { EVENT_TYPE_WORDS, OUTPUT_WORDS } from "../choices.ts";
import { PagedActorNames } from "../client/actor-names.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addLimit, addListingOptions, addNotes, REQUEST_ID } from "../command.ts";
import { type EventQuery, type EventQueryOptions, parseEventQuery } from "../events/event-query.ts";
import { followEvents } from "../events/follow-events.ts";
import { UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { ANSWER_FORMATS, formatPlain, outputFormat, toPlain, writeAnswer } from "../output/format.ts";
import { isWide, itemWriter, type ListingOptions, onePage, printListing, readPages } from "../output/listing.ts";
import { type Cell, type Column, reasonCell, shortTimeCell, timeCell } from "../output/table.ts";
import type { Shell } from "../shell.ts";

/** Define `events` and its verb `republish`. */
export function defineEvents(events: Command, shell: Shell): void {
  events
    .option("-f, --follow", "Continue with new events, until Ctrl-C")
    .option("--last <count>", "Print this many of the latest events (default: 50)")
    .option(
      "--since <start>",
      "Print all events since a time, a duration ago such as 1h, or after a revision; 0 for all events that are " +
        "kept; with --follow, also after a resume token",
    )
    .option("--until <time>", "Only events before a time, or a duration ago")
    .option("--type <types>", "Only events of these types, separated by commas: node.approved,node.rejected")
    .option(
      "--moves",
      "Include moves of agents' streams between replicas (node.session.moved), left out unless --type names them",
    )
    .option("--node <id>", "Only events about this node, by its exact id; it may have been removed")
    .option(
      "--actor <actor>",
      'Only events by this actor: "system", "node:<id>", "token:<id>", "user:<subject>", "join-token:<id>", ' +
        '"service-account:<namespace>/<name>", "replica:<id>"',
    );
  addLimit(addListingOptions(events), "events, then exit").action(action(shell, listOrFollow));
  addNotes(
    events,
    "A stream that breaks is resumed after the last event that was printed: no event is missing or " +
      "repeated. With several filters, all of them must match. If requested events were compacted, the error " +
      "names the revision to start from.",
    `Types; docs/events.md describes when they happen and their reasons:
${EVENT_TYPE_WORDS.map((type) => `  ${type}`).join("\n")}`,
    '-o json|yaml prints a rollcall.events.v1.ListEventsResponse in proto JSON: {"events": [...], ' +
      '"nextPageToken": "", "resumeToken": "..."}; with --follow each rollcall.events.v1.Event on one line, or ' +
      "one YAML document. -o csv prints RFC 4180.",
  );
  const republish = events
    .command("republish")
    .description("Publish events to NATS again, for consumers that lost them")
    .requiredOption("--from <revision>", "First revision to publish again; 0 is the oldest that is kept")
    .option(...REQUEST_ID)
    .action(action(shell, eventsRepublish));
  addNotes(
    republish,
    "Consumers that deduplicate by id see no event twice. -o json|yaml prints a " +
      "rollcall.events.v1.RepublishEventsResponse.",
  );
}

interface EventsOptions extends EventQueryOptions, ListingOptions {}

/** The query for events, and the control plane to read them from. */
interface Source {
  readonly control: ControlPlane;
  readonly client: Client<typeof EventService>;
  readonly query: EventQuery;
}

const listOrFollow: Verb<EventsOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const query = parseEventQuery(options, shell.wallMs());
  const control = reachControlPlane(shell, options);
  const source = { control, client: control.client("registry", EventService), query };
  if (query.follow) await follow(invocation, source);
  else await list(invocation, source);
};

async function list(invocation: Invocation<EventsOptions>, source: Source): Promise<void> {
  const names = new PagedActorNames(source.control);
  await printListing(invocation, {
    ...columnsAndNames(names, invocation),
    pages: readEvents(source),
    itemsOf: async ({ events }) => {
      await names.learn(events.map(({ actor }) => actor));
      return events;
    },
    whole: (pages) => {
      const { nextPageToken = "", resumeToken = "", revision = 0n } = pages.at(-1) ?? {};
      const answer = create(ListEventsResponseSchema, { nextPageToken, resumeToken, revision });
      answer.events = pages.flatMap(({ events }) => events);
      return toPlain(ListEventsResponseSchema, answer);
    },
  });
}

/** Read the events of a query, page by page. */
function readEvents(source: Source): AsyncGenerator<ListEventsResponse> {
  const { start, last, limit } = source.query;
  if (last !== null) return onePage(() => readLatest(source, last));
  return readFrom(source, start.kind === "revision" ? start.revision : 0n, limit);
}

function readFrom(
  { control, client, query: { filter, start, untilMs } }: Source,
  afterRevision: bigint,
  limit: number,
): AsyncGenerator<ListEventsResponse> {
  const range: { fromTime?: Timestamp; untilTime?: Timestamp } = {
    ...(start.kind === "time" ? { fromTime: timestampFromMs(start.atMs) } : {}),
    ...(untilMs === null ? {} : { untilTime: timestampFromMs(untilMs) }),
  };
  return readPages(
    (part) =>
      control.attempt("registry", "list events", () =>
        client.listEvents({ ...filter, ...range, ...part, afterRevision }),
      ),
    { limit, countOf: ({ events }) => events.length },
  );
}

/**
 * Minimum number of revisions that the first scan goes back. Each later scan goes back LOOK_BACK_GROWTH times as far.
 */
const LOOK_BACK = 256n;
const LOOK_BACK_GROWTH = 8n;

/**
 * Read the latest matching events as one page. The log can only be read forwards, so the start moves further back
 * until enough events match.
 */
async function readLatest(source: Source, count: number): Promise<ListEventsResponse> {
  const { start } = source.query;
  if (start.kind !== "latest") return latestAfter(source, start.kind === "revision" ? start.revision : 0n, count);
  const registry = source.control.client("registry", RegistryService);
  const { log } = await source.control.attempt("registry", "list events", () => registry.getControlPlaneStatus({}));
  const { headRevision: head = 0n, compactedRevision: compacted = 0n } = log ?? {};
  for (let back = BigInt(count) * 2n + LOOK_BACK; ; back *= LOOK_BACK_GROWTH) {
    const after = head - back > compacted ? head - back : 0n;
    const page = await latestAfter(source, after, count);
    if (page.events.length >= count || after === 0n) return page;
  }
}

async function latestAfter(source: Source, after: bigint, count: number): Promise<ListEventsResponse> {
  let events: Event[] = [];
  let last = create(ListEventsResponseSchema);
  for await (const page of readFrom(source, after, 0)) {
    events = count === 0 ? [] : [...events, ...page.events].slice(-count);
    last = page;
  }
  const { resumeToken, revision } = last;
  const answer = create(ListEventsResponseSchema, { resumeToken, revision });
  answer.events = events;
  return answer;
}

/** Print the existing events, if any were requested, and then each new one. */
async function follow(invocation: Invocation<EventsOptions>, source: Source): Promise<void> {
  const { query } = source;
  const enough = new AbortController();
  const interrupted = AbortSignal.any([invocation.shell.interrupted, enough.signal]);
  const write = eventWriter(invocation, source.control);
  let left = query.limit === 0 ? Number.POSITIVE_INFINITY : query.limit;
  let { start } = query;
  let hasBegun = false;
  if (start.kind === "latest" || start.kind === "time") {
    let resumeToken = "";
    for await (const page of readEvents(source)) {
      if (page.events.length > 0) await write(page.events.slice(0, left));
      left -= page.events.length;
      resumeToken = page.resumeToken;
    }
    start = { kind: "token", token: resumeToken };
    hasBegun = true;
  }
  if (left <= 0) return;
  const batches = followEvents({
    ...source,
    start,
    hasBegun,
    shell: { ...invocation.shell, interrupted },
  });
  for await (const batch of batches) {
    await write(batch.slice(0, left));
    left -= batch.length;
    // Abort the request, which ends it immediately. Leaving the loop would wait for the server's next message.
    if (left <= 0) enough.abort();
  }
}

/** Write events as they arrive: JSON with one event per line, YAML with one document per event. */
function eventWriter(
  invocation: Invocation<EventsOptions>,
  control: ControlPlane,
): (events: readonly Event[]) => Promise<void> {
  const { shell, options } = invocation;
  const format = outputFormat(options, OUTPUT_WORDS);
  if (format === "json") {
    const lineOf = (event: Event) => `${toJsonString(EventSchema, event, { alwaysEmitImplicit: true })}\n`;
    return async (events) => shell.out.write(events.map(lineOf).join(""));
  }
  if (format === "yaml") {
    return async (events) => {
      for (const event of events) shell.out.write(`---\n${await formatPlain("yaml", toPlain(EventSchema, event))}`);
    };
  }
  const names = new PagedActorNames(control);
  const write = itemWriter(invocation, format, columnsAndNames(names, invocation));
  return async (events) => {
    await names.learn(events.map(({ actor }) => actor));
    write(events);
  };
}

/** Create the columns. They show actors by name, and in wide tables by id. */
const columnsWith = (
  names: PagedActorNames,
  wide: boolean,
  { options, shell }: EventsInvocation,
): readonly Column<Event>[] => [
  { title: "REVISION", name: "revision", rank: 5, cell: ({ revision }) => ({ text: String(revision) }) },
  {
    ...{ title: "TIME", name: "time" },
    cell: ({ time }) => timeCell(time),
    short: ({ time }) => shortTimeCell(time, shell.wallMs()),
  },
  { title: "TYPE", name: "type", rank: rankOf(options.type), cell: ({ type }) => ({ text: type }) },
  { title: "SUBJECT", name: "subject", rank: rankOf(options.node), cell: ({ subject }) => ({ text: subject }) },
  { title: "CHANGE", name: "change", limit: 48, rank: 1, cell: changeCell },
  { title: "REASON", name: "reason", rank: 2, cell: ({ reason }) => reasonCell(reason) },
  { title: "ACTOR", name: "actor", limit: 24, rank: 3, cell: ({ actor }) => names.cell(actor, wide) },
  { title: "MESSAGE", name: "message", limit: 48, rank: 4, cell: ({ message }) => ({ text: message }) },
];

/** A column that repeats the value of a filter is left out first. 0 keeps the column. */
function rankOf(filter: string | undefined): number {
  return filter === undefined || filter.includes(",") ? 0 : 6;
}

type EventsInvocation = Invocation<EventsOptions>;

function columnsAndNames(names: PagedActorNames, invocation: EventsInvocation) {
  return { columns: columnsWith(names, isWide(invocation.options), invocation), nameOf: ({ id }: Event) => id };
}

/** A change in one line, such as "pending -> approved". CSV has the names of the API. */
function changeCell({ type, time, before, after, reason }: Event): Cell {
  const atMs = time === undefined ? 0 : timestampMs(time);
  // The cast allows types of a newer server, whose fields are shown unchanged.
  const facts = { type: type as EventType, atMs, before: before ?? null, after: after ?? null };
  // An event without fields, such as that of a finished rollout, is described by its reason.
  return { text: describeChange(facts) || stateWords(reason), raw: describeChange(facts, apiNames) };
}

interface EventsRepublishOptions {
  readonly from: string;
  readonly requestId?: string;
}

const eventsRepublish: Verb<EventsRepublishOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const fromRevision = parseFrom(options.from);
  const control = reachControlPlane(shell, options);
  const client = control.client("registry", EventService);
  const requestId = options.requestId ?? "";
  const answer = await control.attempt("registry", "republish events", () =>
    client.republishEvents({ fromRevision, requestId }),
  );
  const { fromRevision: from, throughRevision: through } = answer;
  const text =
    from > through
      ? `nothing to publish again: the last published revision is ${through}\n`
      : `publishing revisions ${from} to ${through} again\n`;
  await writeAnswer(shell, format, [RepublishEventsResponseSchema, answer], text);
};

function parseFrom(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new UsageError(`cannot use '${text}' as from value, should be a revision, or 0 for all`);
}
