import { createClient } from "@connectrpc/connect";
import { type Event, EventService, type WatchEventsResponse } from "@rollcall/api/rollcall/events/v1/events_pb";
import { ResumingStream } from "./resuming-stream.ts";
import type { Rig } from "./rig.ts";

/** How a client of the drill behaves. */
export interface Behaviour {
  readonly name: string;
  readonly filter?: {
    readonly types?: string[];
    readonly subject?: string;
    readonly actor?: string;
  };
  /** Called with each message that was kept; may hold up reading. */
  readonly onMessage?: (watcher: ResumingWatcher, messages: number) => void | Promise<void>;
}

/** A client that watches from the beginning of the log, whatever breaks, and keeps all events. */
export class ResumingWatcher {
  readonly behaviour: Behaviour;
  readonly events: Event[] = [];
  /** What a message said, with the number of events that had come by then. */
  readonly marks: { readonly revision: bigint; readonly count: number }[] = [];
  readonly stream: ResumingStream<WatchEventsResponse>;

  /** It watches until `isLast` is true of an event. */
  constructor(rig: () => Rig, behaviour: Behaviour, isLast: (event: Event) => boolean) {
    this.behaviour = behaviour;
    this.stream = new ResumingStream(rig, {
      open: (transport, token, signal) =>
        createClient(EventService, transport).watchEvents(
          {
            start: token === null ? { case: "fromBeginning", value: true } : { case: "resumeToken", value: token },
            ...behaviour.filter,
          },
          { signal, timeoutMs: 0 },
        ),
      keep: ({ events, revision }) => {
        this.events.push(...events);
        this.marks.push({ revision, count: this.events.length });
        return events.some(isLast);
      },
      onMessage: () => behaviour.onMessage?.(this, this.marks.length),
    });
  }

  /** Reasons of all ends so far. */
  get ends(): readonly string[] {
    return this.stream.ends;
  }
}
