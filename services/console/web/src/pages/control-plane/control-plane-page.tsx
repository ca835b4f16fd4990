import { DiagnosisService } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { UpkeepOutcomeSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { useMemo } from "react";
import { NodeLink } from "../../app/link.tsx";
import { clientOf, registry } from "../../live/clients.ts";
import { useFleet, useLook } from "../../live/fleet.ts";
import { EVERY_EVENT, RARE_MS, readAgain, useRead } from "../../live/queries.ts";
import { useRights } from "../../session/session.ts";
import { command } from "../../state/cli-command.ts";
import { NO_FILTER } from "../../state/nodes/node-filter.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { type NodeScope, WHOLE_FLEET } from "../../state/nodes/node-scope.ts";
import { shortDuration } from "../../state/time-words.ts";
import { formatBytes, formatCount } from "../../state/units.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty, Loading, Notice, Read } from "../../ui/notices.tsx";
import { Facts, PageHead, Panel } from "../../ui/panel.tsx";
import { Reason, StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";

const PROCESSES: NodeScope = { ...WHOLE_FLEET, filter: { ...NO_FILTER, type: ["control-plane"] } };

/** The control plane itself: its processes and their leases, the event log, the relay and upkeep. */
export function ControlPlanePage() {
  const rights = useRights();
  const nodes = useFleet();
  const { complete } = nodes;
  useLook(PROCESSES);
  const processes = useMemo(
    () =>
      [...nodes.rows.values()].filter(({ type }) => type === "control-plane").sort((a, b) => (a.id < b.id ? -1 : 1)),
    [nodes],
  );
  const status = useRead(["status"], (signal) => registry.getControlPlaneStatus({}, { signal }), {
    on: EVERY_EVENT,
    gatherMs: RARE_MS,
  });
  return (
    <>
      <PageHead title="Processes">
        <Button
          onClick={() => {
            readAgain("status");
            readAgain("diagnosis");
          }}
        >
          Refresh
        </Button>
        <CopyCommandButton
          text={rights.administer ? command("doctor") : command("node", "list", "--filter-type", "control-plane")}
        />
      </PageHead>
      <div className="page-body">
        <Panel title="Leases" flush>
          {processes.length === 0 && !complete ? (
            <Loading />
          ) : processes.length === 0 ? (
            <Empty title="No process has a lease" />
          ) : (
            <DataTable
              label="Leases"
              rows={processes}
              keyOf={({ id }) => id}
              columns={[
                { title: "Process", cell: ({ id }) => <NodeLink id={id} /> },
                {
                  title: "Lease",
                  cell: ({ connection }) => <StateMark word={connection.word} title={connection.message} />,
                },
                { title: "Since", cell: ({ connection }) => <Time ms={connection.sinceMs} /> },
                { title: "Reason", cell: ({ connection }) => <Reason of={connection.reason} /> },
                { title: "Labels", cell: ({ labelsText }) => <span className="breaks">{labelsText || "-"}</span> },
              ]}
            />
          )}
        </Panel>
        <Read from={status}>
          {({ log, relay, upkeep, joining, clusterId }) => (
            <>
              <div className="grid">
                <Panel title="Log">
                  <Facts
                    of={[
                      ["Cluster", <code key="cluster">{clusterId}</code>],
                      ["Log id", <code key="log">{log?.logId}</code>],
                      ["Head", formatCount(Number(log?.headRevision ?? 0n))],
                      ["Compacted up to", formatCount(Number(log?.compactedRevision ?? 0n))],
                    ]}
                  />
                </Panel>
                <Panel title="Relay to NATS">
                  {relay?.configured ? (
                    <Facts
                      of={[
                        ["Relayed by", relay.instance || "no process at the moment"],
                        ["Acknowledged up to", formatCount(Number(relay.revision))],
                        ["Behind", `${formatCount(Number(relay.lag))} revisions`],
                        ["Position saved", <Time key="saved" ms={toMs(relay.saveTime)} />],
                      ]}
                    />
                  ) : (
                    <p className="soft">NATS is not configured.</p>
                  )}
                </Panel>
                <Panel title="Joining">
                  <Facts
                    of={[
                      ["Manual approval", joining?.manualApproval ? "yes" : "no"],
                      ["Joined without a token", String(joining?.joinedWithoutToken ?? 0)],
                      ["Nodes without a token", joining?.joinedWithoutTokenIds.join(", ")],
                    ]}
                  />
                  {joining?.warnings.map((warning) => (
                    <Notice key={warning} tone="warn">
                      {warning}
                    </Notice>
                  ))}
                </Panel>
              </div>
              <Panel title="Upkeep" flush>
                <DataTable
                  label="Upkeep"
                  rows={upkeep}
                  keyOf={({ name }) => name}
                  columns={[
                    { title: "Kind", cell: ({ name }) => <code>{name}</code> },
                    {
                      title: "Last run",
                      cell: ({ outcome, message }) => (
                        <StateMark word={enumWord(UpkeepOutcomeSchema, outcome)} title={message} />
                      ),
                    },
                    { title: "Started", cell: ({ startTime }) => <Time ms={toMs(startTime)} /> },
                    { title: "Rows", right: true, cell: ({ rows }) => formatCount(Number(rows)) },
                    { title: "Runs", right: true, cell: ({ runs }) => formatCount(Number(runs)) },
                    { title: "By", cell: ({ instance }) => instance },
                    { title: "Message", cell: ({ message }) => <span className="breaks">{message}</span> },
                  ]}
                />
              </Panel>
            </>
          )}
        </Read>
        {rights.administer && <Diagnosis />}
      </div>
    </>
  );
}

/** Diagnostic data of the processes and Postgres, for admins. */
function Diagnosis() {
  const read = useRead(["diagnosis"], (signal) => clientOf(DiagnosisService).getDiagnosis({}, { signal }));
  const ms = (time: { readonly seconds: bigint; readonly nanos: number } | undefined) =>
    time === undefined ? "-" : shortDuration(Math.abs(Number(time.seconds) * 1000 + time.nanos / 1e6));
  return (
    <Read from={read}>
      {({ record, processes, agentVersions }) => (
        <>
          <Panel title="Processes" flush>
            <DataTable
              label="Processes"
              rows={processes}
              keyOf={({ instance }) => instance}
              columns={[
                { title: "Process", cell: ({ instance }) => instance },
                { title: "Services", cell: ({ service }) => service },
                { title: "Machine", cell: ({ host }) => host },
                { title: "Version", cell: ({ version }) => version },
                { title: "Database latency", right: true, cell: ({ storeLatency }) => ms(storeLatency) },
                { title: "Behind the log", right: true, cell: ({ feedLag }) => ms(feedLag) },
                { title: "Clock off by", right: true, cell: ({ clockAhead }) => ms(clockAhead) },
                {
                  title: "Open files",
                  right: true,
                  cell: ({ openFiles, openFilesLimit }) => `${openFiles} / ${openFilesLimit}`,
                },
                {
                  title: "Certificate expires",
                  cell: ({ certificateExpireTime }) => <Time ms={toMs(certificateExpireTime)} />,
                },
              ]}
            />
          </Panel>
          <div className="grid">
            <Panel title="Postgres">
              <Facts
                of={[
                  ["Version", record?.version],
                  ["Size", record === undefined ? "" : formatBytes(Number(record.sizeBytes))],
                  ["Connections", String(record?.connections ?? "")],
                  ["Latency", ms(record?.latency)],
                  ["Standbys", record?.standbys.map(({ name, state }) => `${name} ${state}`).join(", ")],
                ]}
              />
            </Panel>
            <Panel title="Agent versions">
              <Facts
                of={agentVersions.map(({ version, nodes }) => [version || "not reported", formatCount(nodes)] as const)}
              />
            </Panel>
          </div>
        </>
      )}
    </Read>
  );
}
