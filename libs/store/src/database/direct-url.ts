import { StartError } from "@rollcall/process";
import type { ClusterIdentity } from "./cluster.ts";
import { connectionConfig, type RecordAddress } from "./pool.ts";
import { RecordClient } from "./record-client.ts";
import { isUndefinedTable, toConnectError, toStoreError } from "./store-error.ts";

/**
 * Check that the address for sessions leads to the record of this cluster: a process that listens at another database
 * would be woken by nothing, and only be slow.
 *
 * @throws StartError when it is another database, StoreUnavailableError when nothing answers there.
 */
export async function checkDirectUrl(
  { directUrl, applicationName }: RecordAddress & { readonly applicationName: string },
  { clusterId, logId }: ClusterIdentity,
): Promise<void> {
  if (directUrl === undefined) return;
  const found = await identityAt(directUrl, applicationName);
  if (found?.clusterId === clusterId && found.logId === logId) return;
  throw new StartError(
    "Database.DirectURL leads to another database than Database.URL: both must name one database of one server, " +
      "the first without a pooler between",
  );
}

async function identityAt(
  url: string,
  applicationName: string,
): Promise<Pick<ClusterIdentity, "clusterId" | "logId"> | null> {
  const client = new RecordClient(connectionConfig({ url, applicationName }));
  // Its loss rejects the query as well; without a listener it would end this process.
  client.on("error", () => {});
  try {
    await client.connect().catch((error: unknown) => Promise.reject(toConnectError(error)));
    const { rows } = await client.query<{ cluster_id: string; log_id: string }>(
      "select cluster_id, log_id from cluster",
    );
    const [row] = rows;
    return row === undefined ? null : { clusterId: row.cluster_id, logId: row.log_id };
  } catch (error) {
    if (isUndefinedTable(error)) return null;
    throw toStoreError(error);
  } finally {
    await client.end().catch(() => {});
  }
}
