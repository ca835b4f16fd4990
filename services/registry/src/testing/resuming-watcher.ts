import { createClient } from "@connectrpc/connect";
import { type Event, EventService, type WatchEventsResponse } from "@rollcall/api/rollcall/events/v1/events_pb";
import { ResumingStream } from "./resuming-stream.ts";
import type { Rig } from "./rig.ts";

/** The behaviour of a client in the drill. */
export interface Behaviour {
  readonly name: string;
  readonly filter?: {
    readonly types?: string[];
    readonly subject?: string;
    readonly actor?: string;
  };
  /** Called for each processed message; can delay reading. */
  readonly onMessage?: (watcher: ResumingWatcher, messages: number) => void | Promise<void>;
}

/** A client that watches from the start of the log across all disconnects, and keeps all events. */
export class ResumingWatcher {
  readonly behaviour: Behaviour;
  readonly events: Event[] = [];
  /** The revision in a message, and the number of events received by then. */
  readonly marks: { readonly revision: bigint; readonly count: number }[] = [];
  readonly stream: ResumingStream<WatchEventsResponse>;

  /** Watches until `isLast` is true for an event. */
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

  /** Why streams have ended so far. */
  get ends(): readonly string[] {
    return this.stream.ends;
  }
}
