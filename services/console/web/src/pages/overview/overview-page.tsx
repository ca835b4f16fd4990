import { useMemo } from "react";
import { goTo, pathWith } from "../../app/address.ts";
import { PageLink } from "../../app/link.tsx";
import { registry } from "../../live/clients.ts";
import { showEvent } from "../../live/events-read.ts";
import { useComplete, useSummary } from "../../live/fleet.ts";
import { log } from "../../live/log.ts";
import { useObservable } from "../../live/observable.ts";
import { useRead } from "../../live/queries.ts";
import { command } from "../../state/cli-command.ts";
import { STATE_CHOICES } from "../../state/nodes/node-filter.ts";
import { formatBytes, formatCount, formatMillicores } from "../../state/units.ts";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { EventList } from "../../ui/event-list.tsx";
import { GivenFacts, StateBar } from "../../ui/meters.tsx";
import { Empty, Loading, Read } from "../../ui/notices.tsx";
import { PageHead, Panel, Tile } from "../../ui/panel.tsx";
import { HealthHistory } from "./health-history.tsx";
import { NeedsPerson } from "./needs-person.tsx";
import { OwnHealth } from "./own-health.tsx";

/** The fleet at a glance. */
export function OverviewPage() {
  const summary = useSummary();
  const complete = useComplete();
  const latest = useObservable(log.latest);
  const shown = useMemo(() => latest.slice(0, 12).map(showEvent), [latest]);
  const isBegun = useObservable(log.begun);
  // The bars count approved machines, so the lists that they open must not have others.
  const chosen = (field: string) => (word: string) =>
    goTo(pathWith("/nodes", { approval: "approved", [field]: word.toLowerCase() }));
  if (!complete && summary.machines === 0) {
    return (
      <>
        <PageHead title="Overview" />
        <Loading lines={6} />
      </>
    );
  }
  const approved = summary.membership.APPROVED ?? 0;
  return (
    <>
      <PageHead title="Overview">
        <CopyCommandButton text={command("node", "summary")} />
      </PageHead>
      <div className="page-body">
        {summary.machines === 0 && <FirstMachine />}
        <div className="grid narrow">
          <Tile
            name="Machines"
            figure={formatCount(summary.machines)}
            note={`${formatCount(summary.connected)} connected`}
          />
          <Tile
            name="Can take work"
            figure={formatCount(summary.mayTakeWork)}
            note={`of ${formatCount(approved)} approved`}
          />
          <Tile
            name="Cores"
            figure={formatCount(summary.available.cores)}
            note={`available of ${formatCount(summary.total.cores)}`}
          />
          <Tile
            name="Memory"
            figure={formatBytes(summary.available.memoryBytes)}
            note={`available of ${formatBytes(summary.total.memoryBytes)}`}
          />
          <Tile
            name="GPUs"
            figure={formatCount(summary.available.gpus)}
            note={`available of ${formatCount(summary.total.gpus)}`}
          />
        </div>
        <div className="grid even">
          <Panel title="Needs attention">
            <NeedsPerson />
          </Panel>
          <Panel title="States of approved machines">
            <div className="stack">
              <StateBar counts={summary.health} words={STATE_CHOICES.health} onChoose={chosen("health")} />
              <StateBar counts={summary.scheduling} words={STATE_CHOICES.scheduling} onChoose={chosen("scheduling")} />
              <HealthHistory />
            </div>
          </Panel>
        </div>
        <div className="grid">
          <Panel title="Latest events" actions={<PageLink to="/events">All events</PageLink>}>
            {!isBegun ? (
              <Loading />
            ) : shown.length === 0 ? (
              <NoEvents hasMachines={summary.machines > 0} />
            ) : (
              <EventList events={shown} />
            )}
          </Panel>
          <div className="stack">
            <Panel title="Capacity for executions">
              <WorkCapacity />
            </Panel>
            <Panel title="The control plane itself" actions={<PageLink to="/control-plane">Details</PageLink>}>
              <OwnHealth />
            </Panel>
          </div>
        </div>
      </div>
    </>
  );
}

/** Explains why no events are shown: events are loaded after the machines, and are not kept forever. */
function NoEvents({ hasMachines }: { readonly hasMachines: boolean }) {
  return <Empty title={hasMachines ? "No recent events" : "No events yet"} />;
}

function FirstMachine() {
  return (
    <Panel title="No machine has joined yet">
      <Empty title="Let the first machine join">
        <p>Create a join token, and run its command on the machine.</p>
        <PageLink to="/join" className="button primary">
          Join a machine
        </PageLink>
      </Empty>
    </Panel>
  );
}

function WorkCapacity() {
  const summary = useRead(["cluster-summary"], (signal) => registry.getClusterSummary({}, { signal }), {
    on: ["job.", "node.registered", "node.approved", "node.rejected", "node.deleted", "node.info"],
  });
  return (
    <Read from={summary} lines={3}>
      {({ offered, allocated }) =>
        offered === undefined || offered.millicores === 0n ? (
          <p className="soft">No approved machine offers resources for executions.</p>
        ) : (
          <GivenFacts
            of={[
              ["Cores", Number(allocated?.millicores ?? 0n), Number(offered.millicores), formatMillicores],
              ["Memory", Number(allocated?.memoryBytes ?? 0n), Number(offered.memoryBytes), formatBytes],
              ["GPUs", Number(allocated?.gpus ?? 0n), Number(offered.gpus), String],
            ]}
          >
            <dt>Executions</dt>
            <dd className="number">{formatCount(Number(allocated?.executions ?? 0n))}</dd>
          </GivenFacts>
        )
      }
    </Read>
  );
}
