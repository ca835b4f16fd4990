import { EventService, RepublishEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";

/** What `events republish` takes. */
export interface EventsRepublishOptions {
  readonly from: string;
  readonly requestId?: string;
}

/**
 * `events republish`: has events sent to NATS again; prints which, or with --output a
 * rollcall.events.v1.RepublishEventsResponse.
 */
export const eventsRepublish: Verb<EventsRepublishOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const fromRevision = parseFrom(options.from);
  const control = reachControlPlane(shell, options);
  const client = control.client("registry", EventService);
  const requestId = options.requestId ?? "";
  const answer = await control.attempt("registry", "republish events", () =>
    client.republishEvents({ fromRevision, requestId }),
  );
  if (format === "table") {
    const { fromRevision: from, throughRevision: through } = answer;
    shell.out.write(
      from > through
        ? `nothing to publish again: revision ${through} is the last that was published\n`
        : `revisions ${from} to ${through} are published again\n`,
    );
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, toPlain(RepublishEventsResponseSchema, answer)));
};

function parseFrom(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new UsageError(`cannot use '${text}' as from value, should be a revision, or 0 for all`);
}
