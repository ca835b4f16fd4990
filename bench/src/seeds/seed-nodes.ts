import { keyFingerprint } from "@rollcall/identity";
import { nodeInfoToRow } from "@rollcall/wire";
import { Client } from "pg";
import { benchNodeId, benchNodeInfo, benchNodeKey } from "./bench-nodes.ts";

const NODES_A_STATEMENT = 1_000;

/** The nodes to write to an empty store. */
export interface SeedOptions {
  readonly url: string;
  readonly count: number;
  /**
   * Whether the nodes have keys, so that agents can prove their identity. Creating a key takes a tenth of a
   * millisecond.
   */
  readonly identities: boolean;
}

/** Writes approved compute nodes directly to the store, as if each had registered and never connected. */
export async function seedNodes(options: SeedOptions): Promise<void> {
  const client = new Client({ connectionString: options.url });
  await client.connect();
  try {
    await client.query("begin");
    for (let from = 0; from < options.count; from += NODES_A_STATEMENT) {
      const until = Math.min(from + NODES_A_STATEMENT, options.count);
      const indices = Array.from({ length: until - from }, (_, offset) => from + offset);
      await insertNodes(client, indices);
      if (options.identities) await insertIdentities(client, indices);
    }
    await client.query("commit");
    // Update the statistics, because query plans depend on them and autovacuum does not update them in time
    // after bulk writes.
    await client.query("vacuum analyze");
  } finally {
    await client.end();
  }
}

async function insertNodes(client: Client, indices: readonly number[]): Promise<void> {
  const nodes = indices.map((index) => {
    const { info, digest, summary, agentLabels } = nodeInfoToRow(benchNodeInfo(index));
    return { id: benchNodeId(index), info, digest, ...summary, labels: agentLabels };
  });
  const seeds = JSON.stringify(nodes);
  await client.query(
    `insert into nodes (id, type, membership, membership_reason, membership_message, membership_actor,
       info, info_digest, cores, memory_bytes, disk_bytes, gpus)
     select id, 'COMPUTE', 'APPROVED', 'AUTO_APPROVED', '', 'system',
       info, digest, cores, "memoryBytes", "diskBytes", gpus
     from jsonb_to_recordset($1::jsonb) as seed (id text, info jsonb, digest text, cores integer,
       "memoryBytes" bigint, "diskBytes" bigint, gpus integer)`,
    [seeds],
  );
  await client.query(
    `insert into node_sessions (node_id, node_type,
       connection, connection_reason, connection_message, connection_actor,
       health, health_reason, health_message, health_actor)
     select id, 'COMPUTE', 'DISCONNECTED', 'NEVER_CONNECTED', '', 'system',
       'UNKNOWN', 'NEVER_CONNECTED', '', 'system'
     from jsonb_to_recordset($1::jsonb) as seed (id text)`,
    [seeds],
  );
  await client.query(
    `insert into node_labels (node_id, tier, key, value, effective)
     select seed.id, 'agent', label.key, label.value, true
     from jsonb_to_recordset($1::jsonb) as seed (id text, labels jsonb)
     cross join lateral jsonb_each_text(seed.labels) as label (key, value)`,
    [seeds],
  );
}

async function insertIdentities(client: Client, indices: readonly number[]): Promise<void> {
  const keys = indices.map((index) => {
    const { publicKey } = benchNodeKey(index);
    return {
      id: benchNodeId(index),
      key: Buffer.from(publicKey).toString("hex"),
      fingerprint: keyFingerprint(publicKey),
    };
  });
  await client.query(
    `insert into node_identities (node_id, public_key, fingerprint)
     select id, decode(key, 'hex'), fingerprint
     from jsonb_to_recordset($1::jsonb) as seed (id text, key text, fingerprint text)`,
    [JSON.stringify(keys)],
  );
}
