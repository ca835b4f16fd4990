import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { CloudEvent } from "../cloud-event.ts";

/** A stream message as a consumer receives it. */
export interface ReadMessage {
  readonly subject: string;
  readonly messageId: string;
  readonly contentType: string;
  readonly event: CloudEvent;
}

/** Read all messages in a server's stream, in order, over a separate connection. */
export async function readEventRows(
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

/** Read all messages in a stream, in order. */
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
    // Compare sequences, because a busy server's count of pending messages is only an estimate.
    if (message.seq >= state.last_seq) break;
  }
  return messages;
}

/** List the distinct revisions of messages, as seen by a consumer that deduplicates by id. */
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
