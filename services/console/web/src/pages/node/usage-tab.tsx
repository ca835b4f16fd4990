import { HealthQueryService, type NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { lazy, Suspense, useState } from "react";
import { clientOf } from "../../live/clients.ts";
import { useStream } from "../../live/follow.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { shortDuration } from "../../state/time-words.ts";
import { addSample, NO_SAMPLES, type UsageSeries } from "../../state/usage-series.ts";
import { Empty, Loading } from "../../ui/notices.tsx";
import { Facts, Panel } from "../../ui/panel.tsx";
import { ExactTime } from "../../ui/time.tsx";

const Chart = lazy(() => import("../../ui/chart.tsx").then((module) => ({ default: module.Chart })));

/** The current usage of a node, updated every two seconds while it is shown. */
export function UsageTab({
  id,
  node,
  isConnected,
}: {
  readonly id: string;
  readonly node: Node | undefined;
  readonly isConnected: boolean;
}) {
  const [series, setSeries] = useState<UsageSeries>(NO_SAMPLES);
  const [latest, setLatest] = useState<NodeHealth | null>(null);
  useStream(id, () => ({
    open: (signal) => {
      setSeries(NO_SAMPLES);
      return clientOf(HealthQueryService).watchNodeHealth({ nodeIds: [id], includeSamples: true }, { signal });
    },
    onMessage: ({ nodes }) => {
      const [health] = nodes;
      if (health === undefined) return;
      setLatest(health);
      setSeries((before) => addSample(before, health, Date.now()));
    },
  }));
  if (latest === null) {
    return (
      <Panel title="Usage">
        {isConnected ? (
          <Loading />
        ) : (
          <Empty title="Not connected">
            <p>A node reports its usage while it is connected. The usage appears here when the node returns.</p>
          </Empty>
        )}
      </Panel>
    );
  }
  const seconds = (time: { readonly seconds: bigint; readonly nanos: number } | undefined) =>
    time === undefined ? "" : shortDuration(Number(time.seconds) * 1000 + Math.round(time.nanos / 1e6));
  const isBehind = seconds(latest.clockSkew).startsWith("-");
  return (
    <div className="stack">
      <Suspense fallback={<Loading />}>
        {series.times.length === 0 ? (
          <Panel title="Usage">
            <Empty title="No samples yet">
              <p>{latest.telemetryUnavailable || "The node has not reported its usage yet."}</p>
            </Empty>
          </Panel>
        ) : (
          <div className="grid">
            <Panel title="Processor and memory">
              <Chart series={series} lines={["cpu", "memory", "disk"]} unit="%" max={100} />
            </Panel>
            {series.lines.temperature !== undefined && (
              <Panel title="Temperature">
                <Chart
                  series={series}
                  lines={["temperature", "temperature-max"]}
                  words={["average", "highest"]}
                  unit="°C"
                />
              </Panel>
            )}
            {series.numaNodes.map((id) => (
              <Panel key={`numa${id}`} title={`NUMA node ${id}`}>
                <Chart
                  series={series}
                  lines={[`numa${id}`, `numa${id}-memory`]}
                  words={["processors", "memory"]}
                  unit="%"
                  max={100}
                />
              </Panel>
            ))}
            {series.gpus.map((index) => (
              <Panel
                key={`gpu${index}`}
                title={`GPU ${index} ${node?.info?.gpus.find((gpu) => gpu.index === index)?.name ?? ""}`}
              >
                <Chart
                  series={series}
                  lines={[`gpu${index}`, `gpu${index}-memory`, `gpu${index}-temperature`]}
                  words={["busy", "memory", "temperature"]}
                  unit="% and °C"
                  max={100}
                />
              </Panel>
            ))}
          </div>
        )}
      </Suspense>
      <Panel title="Session and heartbeats">
        <Facts
          of={[
            ["Replica", latest.replicaId],
            ["Session epoch", String(latest.sessionEpoch)],
            ["Connected since", <ExactTime key="since" ms={isConnected ? toMs(node?.connection?.since) : null} />],
            ["Silent for", seconds(latest.silentFor)],
            ["Interval", seconds(latest.heartbeatInterval)],
            ["Unhealthy after", seconds(latest.unhealthyAfter)],
            ["Unknown after", seconds(latest.unknownAfter)],
            [isBehind ? "Clock behind by" : "Clock ahead by", seconds(latest.clockSkew).replace(/^-/, "")],
            ["Live data unavailable", latest.telemetryUnavailable],
          ]}
        />
      </Panel>
    </div>
  );
}
