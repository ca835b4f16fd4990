import { setTimeout as sleep } from "node:timers/promises";
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
import { describeChange, type EventType } from "@rollcall/domain";
import type { Command } from "commander";
import { EVENT_TYPE_WORDS, OUTPUT_WORDS } from "../choices.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addLimit, addListingOptions, addNotes, type Invocation, REQUEST_ID, type Verb } from "../command.ts";
import { type EventQuery, type EventQueryOptions, parseEventQuery } from "../events/event-query.ts";
import { followEvents } from "../events/follow-events.ts";
import { UsageError } from "../failure.ts";
import { ANSWER_FORMATS, formatPlain, outputFormat, toPlain, writeAnswer } from "../output/format.ts";
import { itemWriter, type ListingOptions, onePage, printListing, readPages } from "../output/listing.ts";
import { type Column, timeCell } from "../output/table.ts";
import type { Shell } from "../shell.ts";

/** Define `events` and its verb `republish`. */
export function defineEvents(events: Command, shell: Shell): void {
  events
    .option("-f, --follow", "Go on with new events, until Ctrl-C")
    .option("--last <count>", "Print the latest events, so many of them (default: 50)")
    .option(
      "--since <start>",
      "Print every event since a time, a duration ago such as 1h, or after a revision; 0 is everything that is " +
        "kept; with --follow a resume token too",
    )
    .option("--until <time>", "Only events before a time, or a duration ago")
    .option("--type <types>", "Only events of these types; several with commas: node.approved,node.rejected")
    .option(
      "--moves",
      "Moves of agents' streams between replicas, node.session.moved, too; they are left out unless --type names them",
    )
    .option("--node <id>", "Only events about this node, by its exact id; it may have been removed")
    .option(
      "--actor <actor>",
      'Only events by this actor: "system", "node:<id>", "token:<id>", "user:<subject>", "join-token:<id>", ' +
        '"service-account:<namespace>/<name>", "replica:<id>"',
    );
  addLimit(addListingOptions(events), "events, then end").action(action(shell, listOrFollow));
  addNotes(
    events,
    "A stream that breaks is resumed after the last event that was printed: none is missing and none comes " +
      "twice. The server filters; with several filters, all of them must match. Events that were compacted are " +
      "refused with the revision from which to begin.",
    `Types; docs/events.md says when they happen and which reasons they have:
${EVENT_TYPE_WORDS.map((type) => `  ${type}`).join("\n")}`,
    `Examples:
  rollcall events --follow --type node.health.changed,node.connection.changed
  rollcall events --node n1 --since 1h -o csv`,
    '-o json|yaml prints a rollcall.events.v1.ListEventsResponse in proto JSON: {"events": [...], ' +
      '"nextPageToken": "", "resumeToken": "..."}; with --follow each rollcall.events.v1.Event in one line, or ' +
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

/** Where events come from. */
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
  await printListing(invocation, {
    ...COLUMNS_AND_NAMES,
    pages: readEvents(source),
    itemsOf: ({ events }) => events,
    whole: (pages) => {
      const { nextPageToken = "", resumeToken = "", revision = 0n } = pages.at(-1) ?? {};
      const answer = create(ListEventsResponseSchema, { nextPageToken, resumeToken, revision });
      answer.events = pages.flatMap(({ events }) => events);
      return toPlain(ListEventsResponseSchema, answer);
    },
  });
}

/** The events that a query is for, page by page. */
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

/** Revisions of the first look back, at least, and how much further each later look goes. */
const LOOK_BACK = 256n;
const LOOK_BACK_GROWTH = 8n;

/**
 * The latest events that match, as one page. The log is read forwards only, so it is read from further and further back
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

const BACKOFF = { baseMs: 200, maxMs: 10_000 };

/** Print the existing events, if any were asked for, and then each new one. */
async function follow(invocation: Invocation<EventsOptions>, source: Source): Promise<void> {
  const { err } = invocation.shell;
  const { query } = source;
  const enough = new AbortController();
  const interrupted = AbortSignal.any([invocation.shell.interrupted, enough.signal]);
  const write = eventWriter(invocation);
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
    interrupted,
    onBreak: (line) => err.write(`warning: the stream broke: ${line}; resuming\n`),
    pause: async (attempt) => {
      // Loaded only when a stream breaks: it would slow down the start.
      const { fullJitter } = await import("@rollcall/process");
      const pauseMs = fullJitter({ ...BACKOFF, attempt, random01: Math.random() });
      await sleep(pauseMs, undefined, { signal: interrupted });
    },
  });
  for await (const batch of batches) {
    await write(batch.slice(0, left));
    left -= batch.length;
    // The request ends with it; to leave the loop alone waits for the server's next message.
    if (left <= 0) enough.abort();
  }
}

/** Write events piece by piece: JSON with one event a line, YAML with one document each. */
function eventWriter(invocation: Invocation<EventsOptions>): (events: readonly Event[]) => Promise<void> {
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
  const write = itemWriter(invocation, format, COLUMNS_AND_NAMES);
  return async (events) => write(events);
}

const COLUMNS: readonly Column<Event>[] = [
  { title: "REVISION", name: "revision", rank: 5, cell: ({ revision }) => ({ text: String(revision) }) },
  { title: "TIME", name: "time", cell: ({ time }) => timeCell(time) },
  { title: "TYPE", name: "type", cell: ({ type }) => ({ text: type }) },
  { title: "SUBJECT", name: "subject", cell: ({ subject }) => ({ text: subject }) },
  { title: "CHANGE", name: "change", limit: 48, rank: 1, cell: (event) => ({ text: changeOf(event) }) },
  { title: "REASON", name: "reason", rank: 2, cell: ({ reason }) => ({ text: reason }) },
  { title: "ACTOR", name: "actor", limit: 32, rank: 3, cell: ({ actor }) => ({ text: actor }) },
  { title: "MESSAGE", name: "message", limit: 48, rank: 4, cell: ({ message }) => ({ text: message }) },
];

const COLUMNS_AND_NAMES = { columns: COLUMNS, nameOf: ({ id }: Event) => id };

/** A change in one line: "PENDING -> APPROVED". */
function changeOf({ type, time, before, after }: Event): string {
  const atMs = time === undefined ? 0 : timestampMs(time);
  // A newer server may have further types; their fields are shown as they are.
  const facts = { type: type as EventType, atMs };
  return describeChange({ ...facts, before: before ?? null, after: after ?? null });
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
      ? `nothing to publish again: revision ${through} is the last that was published\n`
      : `revisions ${from} to ${through} are published again\n`;
  await writeAnswer(shell, format, [RepublishEventsResponseSchema, answer], text);
};

function parseFrom(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new UsageError(`cannot use '${text}' as from value, should be a revision, or 0 for all`);
}
