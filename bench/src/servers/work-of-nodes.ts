import type { Client } from "pg";

/** The resources that nodes offer to executions. */
export interface Offer {
  readonly millicores: number;
}

/** Let all nodes of the store offer resources, as if their agents had connected and reported them. */
export async function offerWork(client: Client, { millicores }: Offer): Promise<void> {
  const offer = {
    ...{ executors: ["process"], millicores, memoryBytes: "500000000000", diskBytes: "1000000000000" },
    limits: ["cpu", "memory"],
  };
  await client.query("update nodes set info = info || jsonb_build_object('work', $1::jsonb)", [JSON.stringify(offer)]);
}

/** Submit a service that sleeps. */
export async function submitService(
  port: number,
  token: string,
  { name, count, millicores }: { readonly name: string; readonly count: number; readonly millicores: number },
): Promise<void> {
  const spec = {
    ...{ name, type: "JOB_TYPE_SERVICE", count, queueTimeout: "3600s" },
    ...{ resources: { millicores }, process: { command: ["sleep", "infinity"] } },
  };
  await callJobs(port, token, "SubmitJob", { spec });
}

/** Call a method of JobService. */
export async function callJobs(port: number, token: string, method: string, request: object): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${port}/rollcall.scheduler.v1.JobService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(request),
  });
  if (!answer.ok) throw new Error(`${method} was refused: ${await answer.text()}`);
  return answer.json();
}

/** Run a query that returns a count. Returns the count. */
export async function countOf(client: Client, query: string): Promise<number> {
  const { rows } = await client.query<{ readonly count: number }>(query);
  return rows[0]?.count ?? 0;
}
