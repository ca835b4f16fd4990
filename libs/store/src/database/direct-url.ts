import { StartError } from "@rollcall/process";
import type { ClusterIdentity } from "./cluster.ts";
import { connectionConfig, type StoreAddress } from "./pool.ts";
import { StoreClient } from "./store-client.ts";
import { isUndefinedTable, toConnectError, toStoreError } from "./store-error.ts";

/**
 * Check that the direct URL leads to this cluster's database. A process that listens on another database would receive
 * no notifications, and would only seem slow.
 *
 * @throws StartError when the URL leads to another database, StoreUnavailableError when that database does not respond.
 */
export async function checkDirectUrl(
  { directUrl, applicationName }: StoreAddress & { readonly applicationName: string },
  { clusterId, logId }: ClusterIdentity,
): Promise<void> {
  if (directUrl === undefined) return;
  const found = await identityAt(directUrl, applicationName);
  if (found?.clusterId === clusterId && found.logId === logId) return;
  throw new StartError(
    "Database.DirectURL and Database.URL point to different databases; both must point to the same database of the " +
      "same " +
      "server, and Database.DirectURL must bypass the pooler",
  );
}

async function identityAt(
  url: string,
  applicationName: string,
): Promise<Pick<ClusterIdentity, "clusterId" | "logId"> | null> {
  const client = new StoreClient(connectionConfig({ url, applicationName }));
  // Ignore the error event, because a lost connection also rejects the query. Without a listener, the event would end
  // this process.
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
