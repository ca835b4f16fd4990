import { expect, it } from "@jest/globals";
import { until } from "../../libs/testkit/src/index.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

/** Count the connections to the cluster's database that listen for new log entries. */
async function listening(): Promise<number> {
  const rows = await rig.store.db
    .withTables<{ pg_stat_activity: { readonly application_name: string; readonly datname: string } }>()
    .selectFrom("pg_stat_activity")
    .select("application_name")
    .where("application_name", "like", "% feed")
    .where("datname", "=", new URL(rig.store.address.url).pathname.slice(1))
    .execute();
  return rows.length;
}

it("should follow the log once for all services of a process, with watches of every kind open", async () => {
  await rig.connect("watched");
  const ending = new AbortController();
  let answered = 0;
  const lines = ["events --follow --last 5", "node health watched --follow"].map((line) => {
    let isFirst = true;
    const onOutput = () => {
      answered += isFirst ? 1 : 0;
      isFirst = false;
    };
    return rig.run(line, { interrupted: ending.signal, onOutput });
  });
  const nodes = rig.client.registry.watchNodes({}, { signal: ending.signal })[Symbol.asyncIterator]();
  await nodes.next();
  await until("each watch to have answered", () => answered === lines.length);
  expect(await listening()).toBe(1);
  ending.abort();
  await Promise.all(lines);
  await nodes.return?.();
});
