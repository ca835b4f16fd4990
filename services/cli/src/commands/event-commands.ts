import type { Command } from "commander";
import { EVENT_TYPE_WORDS } from "../choices.ts";
import type { Shell } from "../shell.ts";
import type { EventsOptions } from "../verbs/events.ts";
import type { EventsRepublishOptions } from "../verbs/events-republish.ts";
import { lazily } from "./lazily.ts";

/** Add `events` and its verb `republish`. */
export function addEventCommands(program: Command, shell: Shell): void {
  const events = program
    .command("events")
    .description("print what happened, oldest first, and with --follow what happens")
    .option("-f, --follow", "go on with what happens, until Ctrl-C; without --since from now on")
    .option(
      "--since <revision>",
      "only what came after this revision; 0 is everything that is kept; with --follow a resume token too",
    )
    .option("--type <types>", "only events of these types; several with commas: node.approved,node.rejected")
    .option(
      "--moves",
      "with moves of agents' streams between replicas, node.session.moved, which are left out unless --type names them",
    )
    .option("--node <id>", "only events about this node, by its exact id; it may be gone")
    .option(
      "--actor <actor>",
      'only events by this actor: "system", "node:<id>", "token:<id>", "user:<subject>", "join-token:<id>", "replica:<id>"',
    )
    .option("--limit <count>", "at most so many events, then end (default: all)")
    .option("--wide", "do not cut long values short")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      `
A stream that breaks is resumed by itself, after the last event that was printed: none is missing and none comes twice.
The filters are the server's; with several, all of them must match. What was compacted is refused with the revision from which to begin.

Types, of which docs/events.md says when they happen and the reasons that they have:
${EVENT_TYPE_WORDS.map((type) => `  ${type}`).join("\n")}

Examples:
  rollcall events --follow --type node.health.changed,node.connection.changed
  rollcall events --node n1 --since 0 --output csv

--output json|yaml prints a rollcall.events.v1.ListEventsResponse in proto JSON: {"events": [...], "nextPageToken": "", "resumeToken": "..."};
with --follow a rollcall.events.v1.Event in one line, or one YAML document, each. --output csv prints RFC 4180.`,
    )
    .action(lazily<EventsOptions>(shell, async () => (await import("../verbs/events.ts")).events));
  addRepublish(events, shell);
}

function addRepublish(events: Command, shell: Shell): void {
  events
    .command("republish")
    .description("have events published to NATS again, for consumers that lost what they had")
    .requiredOption("--from <revision>", "the first revision to publish again; 0 is the oldest that is kept")
    .option("--request-id <id>", "the same id twice has one effect and the same answer")
    .addHelpText(
      "after",
      "\nConsumers that deduplicate by id see nothing twice. --output json|yaml prints a rollcall.events.v1.RepublishEventsResponse.",
    )
    .action(
      lazily<EventsRepublishOptions>(shell, async () => (await import("../verbs/events-republish.ts")).eventsRepublish),
    );
}
