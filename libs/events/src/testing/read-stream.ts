import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { CloudEvent } from "../cloud-event.ts";

/** A message of a stream, as a consumer gets it. */
export interface ReadMessage {
  readonly subject: string;
  readonly messageId: string;
  readonly contentType: string;
  readonly event: CloudEvent;
}

/** Read everything that a stream of a server holds, in its order, over a connection of its own. */
export async function readStoredEvents(
  server: { readonly url: string },
  name = "ROLLCALL_EVENTS",
): Promise<readonly ReadMessage[]> {
  const connection = await connect({ servers: server.url });
  try {
    return await readStream(await jetstreamManager(connection), name);
  } finally {
    await connection.close();
  }
}

/** Read everything that a stream holds, in its order. */
export async function readStream(manager: JetStreamManager, name: string): Promise<readonly ReadMessage[]> {
  const { state } = await manager.streams.info(name);
  const messages: ReadMessage[] = [];
  if (state.messages === 0) return messages;
  const consumer = await manager.jetstream().consumers.get(name);
  for await (const message of await consumer.consume()) {
    messages.push({
      subject: message.subject,
      messageId: message.headers?.get("Nats-Msg-Id") ?? "",
      contentType: message.headers?.get("content-type") ?? "",
      event: message.json<CloudEvent>(),
    });
    // What the server says is still to come is an estimate while it is busy.
    if (message.seq >= state.last_seq) break;
  }
  return messages;
}

/** The revisions of messages, each once: as a consumer has them that deduplicates by id. */
export function distinctRevisions(messages: readonly ReadMessage[]): readonly bigint[] {
  const ids = new Set<string>();
  const revisions: bigint[] = [];
  for (const { event } of messages) {
    if (ids.has(event.id)) continue;
    ids.add(event.id);
    revisions.push(BigInt(event.revision));
  }
  return revisions;
}
