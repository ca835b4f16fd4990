import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import {
  type Event,
  EventService,
  type ListEventsResponse,
  ListEventsResponseSchema,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { OUTPUT_WORDS } from "../choices.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { type EventQuery, type EventQueryOptions, parseEventQuery } from "../events/event-query.ts";
import { createEventWriter, type EventLook } from "../events/event-writer.ts";
import { followEvents } from "../events/follow-events.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";

/** What `events` takes. */
export interface EventsOptions extends EventQueryOptions, EventLook {}

const PAGE_SIZE = 500;
const BACKOFF_BASE_MS = 200;
const BACKOFF_MAX_MS = 10_000;

/** `events`: what happened, and with --follow what happens. */
export const events: Verb<EventsOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const format = outputFormat(options, OUTPUT_WORDS);
  const query = parseEventQuery(options);
  const control = reachControlPlane(shell, options);
  const client = control.client("registry", EventService);
  if (query.follow) {
    await follow(invocation, format, { control, client, query });
    return;
  }
  const pages = readPages(control, client, query);
  if (format === "json" || format === "yaml") {
    const found: Event[] = [];
    let last: ListEventsResponse = create(ListEventsResponseSchema);
    for await (const page of pages) {
      found.push(...page.events);
      last = page;
    }
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const { nextPageToken, resumeToken, revision } = last;
    const facts = { nextPageToken, resumeToken, revision };
    const answer = create(ListEventsResponseSchema, { events: found, ...facts });
    shell.out.write(await formatStructured(format, toPlain(ListEventsResponseSchema, answer)));
    return;
  }
  const write = createEventWriter(invocation, format);
  for await (const page of pages) await write(page.events);
};

interface Source {
  readonly control: ControlPlane;
  readonly client: Client<typeof EventService>;
  readonly query: EventQuery;
}

async function follow(
  invocation: Invocation<EventsOptions>,
  format: (typeof OUTPUT_WORDS)[number],
  source: Source,
): Promise<void> {
  const { interrupted, err } = invocation.shell;
  const write = createEventWriter(invocation, format);
  let left = source.query.limit;
  const batches = followEvents({
    ...source,
    interrupted,
    onBreak: (line) => err.write(`warning: the stream broke: ${line}; going on\n`),
    pause: (attempt) => sleep(backoffMs(attempt), undefined, { signal: interrupted }),
  });
  for await (const batch of batches) {
    await write(batch.slice(0, left));
    left -= batch.length;
    if (left <= 0) return;
  }
}

async function* readPages(
  control: ControlPlane,
  client: Client<typeof EventService>,
  { since, filter, limit }: EventQuery,
): AsyncGenerator<ListEventsResponse> {
  const afterRevision = since.kind === "revision" ? since.revision : 0n;
  let left = limit;
  let pageToken = "";
  do {
    const pageSize = Math.min(PAGE_SIZE, left);
    const request = { ...filter, afterRevision, pageSize, pageToken };
    const page = await control.attempt("registry", "list events", () => client.listEvents(request));
    left -= page.events.length;
    pageToken = page.nextPageToken;
    yield page;
  } while (pageToken !== "" && left > 0);
}

/** Full jitter: many clients of one server that restarts should not come back in step. */
function backoffMs(attempt: number): number {
  return Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** Math.min(attempt, 10));
}
